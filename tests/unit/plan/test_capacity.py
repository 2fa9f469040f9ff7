"""What a Node shows, held against what its agent offers."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from gpushare.domain.gpunode import CAPACITY_SHOWN, GPUNodeStatus, ResourceStatus
from gpushare.plan.build import build_plan
from gpushare.plan.snapshot import Snapshot
from support.snapshots import (
    NOW,
    carry_out,
    condition_of,
    config_map,
    node,
    settle,
    sharing_policy,
    snapshot,
    time_slicing,
)

GPU = "nvidia.com/gpu"
LATE = "2026-11-29T12:00:30Z"
SOON = "2026-11-29T12:00:29Z"


def resource(total: int, healthy: int | None = None, name: str = GPU) -> ResourceStatus:
    healthy = total if healthy is None else healthy
    return ResourceStatus(name=name, strategy="none", replicas=1, total=total, healthy=healthy)


def cluster(shown: dict[str, tuple[int, int]], *offered: ResourceStatus) -> Snapshot:
    """One node that has applied everything; it shows, and its agent offers."""
    start = snapshot(node(), policies=(sharing_policy("any"),), config_maps=(config_map(any=time_slicing(4)),))
    settled, _ = settle(start)
    [only], [gpu_node] = settled.nodes, settled.gpu_nodes
    status = replace(gpu_node.status, resources=offered)
    return replace(settled, nodes=(replace(only, resources=shown),), gpu_nodes=(replace(gpu_node, status=status),))


@pytest.mark.parametrize(
    ("shown", "offered", "text"),
    [
        pytest.param({GPU: (4, 4)}, [resource(4)], "", id="equal"),
        pytest.param({}, [resource(0)], "", id="nothing is offered, nothing shown"),
        pytest.param({GPU: (4, 3)}, [resource(4, 3)], "", id="a sick share"),
        pytest.param({GPU: (4, 4), "example.com/nic": (2, 2)}, [resource(4)], "", id="what others offer is theirs"),
        pytest.param({GPU: (1, 1)}, [resource(4)], "the Node shows 1 of nvidia.com/gpu, where 4 are offered", id="of before"),
        pytest.param({}, [resource(4)], "the Node shows 0 of nvidia.com/gpu, where 4 are offered", id="nothing"),
        pytest.param({GPU: (4, 4)}, [resource(4, 3)], "4 allocatable of nvidia.com/gpu, where 3 are healthy", id="sick"),
        pytest.param({GPU: (4, 4), "a/b": (0, 0)}, [resource(0), resource(4, name="a/b")],
                     "shows 4 of nvidia.com/gpu, where 0 are offered; the Node shows 0 of a/b", id="a renamed one"),
    ],
)  # fmt: skip
def test_late(shown: dict[str, tuple[int, int]], offered: list[ResourceStatus], text: str) -> None:
    """A difference that lasts is told on the policy, on the GPUNode and in an Event, with both numbers."""
    found = cluster(shown, *offered)

    first = build_plan(found, NOW)
    plan = build_plan(replace(found, unshown=first.unshown), LATE, first.standing)

    told = [each for item in plan.gpu_node_conditions for each in item.conditions if each.type == CAPACITY_SHOWN]
    assert bool(told) is bool(text)
    assert [event.reason for event in plan.events if "Node" in str(event.regarding)] == ["CapacityDiffers"] * bool(text)
    if text:
        assert text in told[0].message
        [status] = plan.policies
        assert any(text in each.message for each in status.conditions if each.type == "RolledOut")


def test_grace() -> None:
    """What the kubelet has not written yet is waited for without a write on the node, and a pass comes when it is late."""
    found = cluster({GPU: (1, 1)}, resource(4))

    plan = build_plan(found, NOW)
    assert (plan.unshown, plan.wake_seconds) == ({"gpu01": NOW}, 30)
    assert plan.gpu_node_conditions == ()
    [status] = plan.policies
    rolled_out = next(each for each in status.conditions if each.type == "RolledOut")
    assert (rolled_out.status, rolled_out.reason) == ("False", "Waiting")
    assert "waiting for gpu01 (the kubelet has not put its shares on the Node yet)" in rolled_out.message

    again = build_plan(replace(found, unshown=plan.unshown), SOON, plan.standing)
    assert (again.unshown, again.wake_seconds, again.gpu_node_conditions) == ({"gpu01": NOW}, 1, ())


def test_health_on_its_way_is_no_news() -> None:
    """While the kubelet has yet to write that a share is sick, nobody has to wait for the roll-out again."""
    plan = build_plan(cluster({GPU: (4, 4)}, resource(4, 3)), NOW)

    assert (plan.policies, plan.gpu_node_conditions) == ((), ())
    assert plan.unshown


def test_heals() -> None:
    """As soon as the Node shows it, the condition goes and an Event says so; another controller goes on with it."""
    found = cluster({GPU: (1, 1)}, resource(4))
    late = build_plan(replace(found, unshown={"gpu01": NOW}), LATE)
    bad = found
    for plan in (
        late,
        build_plan(carry_out(found, late), LATE),
    ):  # what stands on the GPUNode is told as a conflict then
        bad = carry_out(bad, plan)
        bad = replace(bad, gpu_nodes=tuple(replace(g, status=_offering(g.status)) for g in bad.gpu_nodes))
    assert condition_of(bad, "Ready").status == "False"

    # A controller that has just started knows nothing of before, and yet takes nothing back.
    next_one = build_plan(bad, LATE)
    assert (next_one.gpu_node_conditions, next_one.policies) == ((), ())

    [only] = bad.nodes
    good = build_plan(replace(bad, nodes=(replace(only, resources={GPU: (4, 4)}),)), LATE, late.standing)
    assert [each.type for item in good.gpu_node_conditions for each in item.conditions] == [
        "ConfigAssigned",
        "AgentReady",
    ]
    assert [event.message for event in good.events if event.reason == CAPACITY_SHOWN] == [
        "gpu01 shows what its agent offers"
    ]


def _offering(status: GPUNodeStatus) -> GPUNodeStatus:
    return replace(status, resources=(resource(4),))


@pytest.mark.parametrize(
    "change",
    [
        pytest.param({"agent_pods": ()}, id="an agent that is away"),
        pytest.param({"gpu_nodes": ()}, id="nothing was told yet"),
    ],
)
def test_nothing_to_compare(change: dict[str, Any]) -> None:
    """What an agent said before it went says nothing now."""
    found = replace(cluster({GPU: (1, 1)}, resource(4)), **change)

    assert build_plan(found, NOW).unshown == {}
