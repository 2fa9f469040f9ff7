"""Our labels beside those that NVIDIA's feature discovery was seen to write, node by node."""

from __future__ import annotations

from dataclasses import replace

import pytest

from gpushare.agent.discovery import read_facts
from gpushare.domain.devices import Inventory
from gpushare.domain.pools import Strategy
from gpushare.labels import build_labels
from gpushare.sharing.building import build_pools
from support.recorded_cases import Case, read_cases

TIMESTAMP = 1_700_000_000
LEFT_OUT = {
    "t4x4-initfail": "about the exit status of a command that fails for want of a driver, not about labels",
}
REFUSED = {
    "a100x2-mig-single-strategy-single-mps4": "MPS on MIG devices ends the recorded program; here it is refused, "
    "the devices are served unshared, and labels say so",
}


def labels_of(case: Case) -> dict[str, str]:
    timestamp = TIMESTAMP if "timestamp" in case.body.get("variation", []) else None
    facts = read_facts(case.machine, timestamp=timestamp)
    config = case.config
    if config.strategy is Strategy.MPS:
        # The recorded program does not ask where MPS has its directory; the agent does.
        config = replace(config, flags=replace(config.flags, mps_root="/run/nvidia/mps"))
    has_driver = "LD_LIBRARY_PATH" not in case.body["env"]
    inventory = case.inventory if has_driver else Inventory()
    built = build_pools(inventory, config, case.strategy)
    return build_labels(inventory, built.pools, facts, case.strategy)


@pytest.mark.parametrize(
    "case", [pytest.param(case, id=case.name) for case in read_cases("labels", {*LEFT_OUT, *REFUSED})]
)
def test_labels_are_those_recorded(case: Case) -> None:
    """Every key and every value; where the recorded program varies, one of its answers."""
    found = labels_of(case)

    variants = case.body.get("variants") or [case.body["labels"]]
    if case.body.get("variation") == ["timestamp"]:
        variants = [variant | {"nvidia.com/gfd.timestamp": str(TIMESTAMP)} for variant in variants]
    assert found in variants


@pytest.mark.parametrize(
    "case", [pytest.param(case, id=case.name) for case in read_cases("labels") if case.name in REFUSED]
)
def test_what_is_refused_is_labelled_as_served(case: Case) -> None:
    """A configuration that the node cannot have leaves labels of unshared devices."""
    labels = labels_of(case)

    assert labels["nvidia.com/gpu.replicas"] == "1"
    assert labels["nvidia.com/gpu.sharing-strategy"] == "none"
    assert labels["nvidia.com/mps.capable"] == "false"


def test_mixed_models_have_one_answer() -> None:
    """On a node with two models the labels do not flap: the first of two equally frequent ones."""
    case = next(case for case in read_cases("labels") if case.name == "het-t4-a10-none")

    assert labels_of(case)["nvidia.com/gpu.product"] == "Tesla-T4"
