"""Which configuration NVIDIA's config-manager was seen to link for which label, put to the plan that takes its place.

Each recorded case is a ConfigMap, what was said on the command line, and labels of a node, one after the other.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

import pytest

from gpushare.domain.conditions import Condition
from gpushare.domain.gpunode import CONFIG_ASSIGNED
from gpushare.plan.snapshot import Snapshot
from support.recorded_cases import DATA
from support.snapshots import config_map, node, settle, sharing_policy, snapshot, time_slicing

CASES: Final = {case["case"]: case for case in json.loads((DATA / "config-manager.json").read_text())}
NOT_SHARED: Final = "none"

DIFFERENT: Final[Mapping[str, tuple[str, ...]]] = {
    # It ends where neither label nor default names one, though nothing may be meant to be shared.
    "nolabel-nodefault": (NOT_SHARED,),
    "named-missing": (NOT_SHARED,),
    "single-many": (NOT_SHARED,),
    # It guesses: a key called `default`, or the only one. Here the policy says it.
    "named": (NOT_SHARED, "b", NOT_SHARED),
    "single": (NOT_SHARED,),
    # It does not wait for the node's label before it acts.
    "badlabel": ("a",),
    "oneshot": ("b",),
    # It ends; here the node stays as it is, and it is said.
    "default-missing": (NOT_SHARED,),
}


def default_of(case: Mapping[str, Any]) -> str:
    words = (argument.partition("=") for argument in case["args"])
    return next((value for flag, _, value in words if flag == "--default-config"), "")


def labelled(current: Snapshot, label: str | None) -> Snapshot:
    return replace(current, nodes=(node(**({"config": label} if label else {})),))


def assigned(found: Snapshot) -> tuple[str, Condition]:
    """The configuration that the node has got, and what is said about it."""
    (gpu_node,) = found.gpu_nodes
    assert gpu_node.config is not None
    (condition,) = (each for each in gpu_node.status.conditions if each.type == CONFIG_ASSIGNED)
    return gpu_node.config.name, condition


@pytest.mark.parametrize("case", [pytest.param(case, id=name) for name, case in CASES.items()])
def test_each_label_gets_what_was_recorded(case: dict[str, Any]) -> None:
    """Step by step the same configuration, but for the deliberate differences; a wrong default is a refusal, not an end."""
    texts = {name: time_slicing(2 + number) for number, name in enumerate(case["files"])}
    policies, config_maps = (sharing_policy(default_of(case)),), (config_map(**texts),)
    current = snapshot(node(), policies=policies, config_maps=config_maps)
    for number, step in enumerate(case["steps"]):
        current, _ = settle(labelled(current, step["label"]))
        linked = (step["dst"] or "").rpartition("/")[2].replace("null", NOT_SHARED)
        expected = DIFFERENT[case["case"]][number] if case["case"] in DIFFERENT else linked

        name, condition = assigned(current)
        assert name == expected
        assert (condition.status == "False") is (case["case"] == "default-missing")
