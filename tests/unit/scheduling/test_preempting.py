"""Who has to go for a more important pod."""

from __future__ import annotations

from typing import Any

import pytest

from gpushare.domain.manifests import Manifest
from gpushare.sandbox.scheduling import amounts, diagnosis, filtering, preempting
from support import rooms
from support import workload_objects as objects


def pod(name: str, gpu: int, priority: int = 0, **spec: Any) -> Manifest:
    found = objects.pod(name, gpu=str(gpu))
    found["metadata"] |= {"creationTimestamp": f"2026-01-01T00:00:0{gpu}Z", "uid": name}
    found["spec"] |= {"priority": priority, **spec}
    return found


def victims(asking: Manifest, **nodes: list[Manifest]) -> dict[str, list[str]]:
    """Names of the victims by node; every node has four GPUs."""
    cluster = rooms.build_rooms([objects.node(name, gpu="4") for name in nodes])
    tenants = {name: [(each, amounts.requested(each)) for each in there] for name, there in nodes.items()}
    for name, there in tenants.items():
        for each, asked in there:
            cluster[name].take(each, asked)
    asked = amounts.requested(asking)
    filtered = filtering.build_filtered(asking, asked, cluster)
    assert not filtered.fitting
    found = preempting.find_victims(asking, asked, filtered, cluster, tenants)
    return {name: [each["metadata"]["name"] for each in there] for name, there in found.items()}


@pytest.mark.parametrize(
    ("asks", "there", "expected"),
    [
        pytest.param(2, [pod("a", 2, 1), pod("b", 2)], ["b"], id="the least important"),
        pytest.param(1, [pod("a", 1), pod("b", 3)], ["b"], id="of equals the younger"),
        pytest.param(4, [pod("a", 2), pod("b", 2)], ["a", "b"], id="all"),
        pytest.param(2, [pod("a", 2, 5), pod("b", 2, 9)], [], id="nobody is less important"),
        pytest.param(4, [pod("a", 2), pod("b", 2, 9)], [], id="not enough of them"),
        pytest.param(9, [pod("a", 4)], [], id="never fits"),
    ],
)
def test_victims(asks: int, there: list[Manifest], expected: list[str]) -> None:
    """The more important ones stay where there is room for them beside the pod."""
    assert victims(pod("urgent", asks, 5), n=there).get("n", []) == expected


@pytest.mark.parametrize(
    ("nodes", "chosen"),
    [
        pytest.param({"a": [pod("x", 1, 3)], "b": [pod("y", 1, 1), pod("z", 1, 1)]}, "b", id="less important ones"),
        pytest.param({"a": [pod("x", 1), pod("y", 1)], "b": [pod("z", 1)]}, "b", id="fewer"),
        pytest.param({"b": [pod("x", 1)], "a": [pod("z", 1)]}, "a", id="else by name"),
        pytest.param({}, None, id="nowhere"),
    ],
)
def test_node(nodes: dict[str, list[Manifest]], chosen: str | None) -> None:
    """Where least is lost."""
    assert preempting.choose_node(nodes) == chosen


def test_eligible() -> None:
    """Who never preempts does not, and nobody does again while victims are leaving."""
    going = pod("victim", 1)
    going["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"

    assert preempting.is_eligible(pod("urgent", 1, 5), "", [])
    assert preempting.is_eligible(pod("urgent", 1, 5), "n", [(pod("other", 1), {})])
    assert not preempting.is_eligible(pod("urgent", 1, 5), "n", [(going, {})])
    assert not preempting.is_eligible(pod("urgent", 1, 5, preemptionPolicy="Never"), "", [])


def test_message() -> None:
    """Where others make room, the message says only what is in the way now."""
    refusal = filtering.Refusal(("Insufficient nvidia.com/gpu",), is_final=False)

    text = diagnosis.build_message(pod("urgent", 1, 5), {"n": refusal}, preempts=True)

    assert text == "0/1 nodes are available: 1 Insufficient nvidia.com/gpu."
