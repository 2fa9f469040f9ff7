"""Roll-outs that are played through before they begin."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from gpushare.domain.gpunode import ContainerAllocation, ResourceStatus
from gpushare.domain.selectors import Selector
from gpushare.plan.outlook import Hardware
from gpushare.plan.preview import Preview, build_preview
from gpushare.plan.snapshot import Snapshot
from gpushare.views.preview import build_text
from support.inventories import t4s
from support.snapshots import SETTINGS, config_map, node, settle, sharing_policy, snapshot, time_slicing

NOW = "2026-11-29T13:00:00Z"
GPU = "nvidia.com/gpu"
CANARY = Selector.parse("pool=canary")
REFUSE = "gpushare: {onShrink: refuse}\n"


def cluster(size: int = 4, *, canary_node: str = "gpu0", **settings: Any) -> Snapshot:
    """So many nodes with two GPUs in four slices each, all at rest."""
    nodes = (replace(node(f"gpu{number}"), canary=f"gpu{number}" == canary_node) for number in range(size))
    start = snapshot(*nodes, policies=(sharing_policy("all"),), config_maps=(config_map(all=time_slicing(4)),))
    settled, _ = settle(start)
    return replace(settled, settings=replace(SETTINGS, **settings))


def hardware(name: str, in_use: dict[str, int]) -> Hardware:
    """What an agent tells: eight shares, so many of them in use by a pod each."""
    count = in_use.get(name, 0)
    held = tuple(
        ContainerAllocation(gpu_index=0, namespace="n", pod=f"p{number}", container="c", resource=GPU, shares=(number,))
        for number in range(count)
    )
    resource = ResourceStatus(name=GPU, strategy="time-slicing", replicas=4, total=8, healthy=8, allocated=count)
    return Hardware(inventory=t4s(2), status=replace(Hardware().status, resources=(resource,), allocations=held))


def preview(before: Snapshot, text: str, **in_use: int) -> Preview:
    """An edit of the one key that all nodes run."""
    known = {each.name: hardware(each.name, in_use) for each in before.nodes}
    known = {
        name: replace(one, status=replace(one.status, applied_revision=gpu_node.status.applied_revision))
        for (name, one), gpu_node in zip(sorted(known.items()), sorted(before.gpu_nodes, key=_name), strict=True)
    }
    return build_preview(before, replace(before, config_maps=(config_map(all=text),)), known, NOW)


def _name(gpu_node: Any) -> str:
    return str(gpu_node.name)


def after_of(found: Preview) -> dict[str, int]:
    return {each.name: each.resources_after[GPU] for each in found.nodes}


def test_all_at_once() -> None:
    """Without a brake there is nothing to tell of steps."""
    found = preview(cluster(), time_slicing(8))

    assert found.rehearsal.text == ""
    assert after_of(found) == dict.fromkeys(("gpu0", "gpu1", "gpu2", "gpu3"), 16)


@pytest.mark.parametrize(
    ("settings", "text"),
    [
        pytest.param({"canary": CANARY}, "gpu0; then gpu1, gpu2, gpu3", id="canary"),
        pytest.param({"stop_on_refusal": True}, "gpu0; then gpu1; then gpu2, gpu3", id="steps"),
        pytest.param({"canary": CANARY, "stop_on_refusal": True}, "gpu0; then gpu1; then gpu2, gpu3", id="both"),
    ],
)
def test_steps(settings: dict[str, Any], text: str) -> None:
    """In which order nodes get it; in the end, all have it."""
    found = preview(cluster(**settings), time_slicing(8))

    assert found.rehearsal.text == text
    assert f"roll-out: {text}" in build_text(found)
    assert set(after_of(found).values()) == {16}


def test_many_steps() -> None:
    """Of many steps the first are spelt out."""
    found = preview(cluster(40, stop_on_refusal=True), time_slicing(8))

    assert found.rehearsal.text.endswith("; then gpu12, gpu13, gpu14 and 1 more; then 32 more in 3 steps")


def test_shrink_that_is_refused() -> None:
    """A node that would refuse to shrink keeps what it has, and its pods are named."""
    found = preview(cluster(1), time_slicing(2) + REFUSE, gpu0=6)
    [shown] = found.nodes

    assert found.refused
    assert (shown.resources_after, shown.overuse) == ({GPU: 8}, ())
    pods = "n/p0, n/p1, n/p2, n/p3, n/p4 and 1 more"
    [text] = shown.refusals
    assert text == (
        f"gpushare.onShrink: 6 of nvidia.com/gpu are in use by {pods} and only 4 would be left; delete pods first"
    )


@pytest.mark.parametrize(
    ("text", "in_use"),
    [
        pytest.param(time_slicing(2) + REFUSE, 4, id="room enough"),
        pytest.param(time_slicing(8) + REFUSE, 8, id="more than before"),
        pytest.param(time_slicing(2), 6, id="not asked to refuse"),
    ],
)
def test_shrink_that_is_not_refused(text: str, in_use: int) -> None:
    """Only what would take shares from pods, and only where the configuration says so."""
    assert not preview(cluster(1), text, gpu0=in_use).refused


@pytest.mark.parametrize(
    ("settings", "in_use", "arrived"),
    [
        pytest.param({"canary": CANARY}, {"gpu0": 6}, set(), id="the canary refuses"),
        pytest.param({"canary": CANARY}, {"gpu1": 6}, {"gpu0", "gpu2", "gpu3"}, id="another one, too late"),
        pytest.param({"stop_on_refusal": True}, {"gpu1": 6}, {"gpu0"}, id="the second of the steps"),
    ],
)
def test_where_it_ends(settings: dict[str, Any], in_use: dict[str, int], arrived: set[str]) -> None:
    """Those behind a refusal keep what they have, and it is said why."""
    found = preview(cluster(**settings), time_slicing(2) + REFUSE, **in_use)

    assert {name for name, shares in after_of(found).items() if shares == 4} == arrived
    held = [each for each in found.nodes if each.name in found.rehearsal.held]
    assert all(each.after == each.before and "keeps what it has: " in each.warnings[0] for each in held)
    assert {each.name for each in found.nodes} == arrived | set(in_use) | {each.name for each in held}


def test_without_canaries() -> None:
    """A selector that no node meets would hold everything, which is better known before."""
    before = cluster(canary_node="none", canary=CANARY)
    found = preview(before, time_slicing(8))

    assert set(after_of(found).values()) == {8}
    assert "no GPU node has the labels of canary nodes (pool=canary)" in build_text(found)
