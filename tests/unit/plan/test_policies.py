"""Which ClusterPolicy counts."""

from __future__ import annotations

from dataclasses import replace

import pytest

from gpushare.plan import policies
from gpushare.plan.build import build_plan
from gpushare.plan.snapshot import Policy, Settings
from support.snapshots import LATER, config_map, node, policy, settle, sharing_policy, snapshot, time_slicing

OLD = policy("old", created="2025-01-01T00:00:00Z")
NEW = policy("new", created="2026-01-01T00:00:00Z")
TWIN = policy("a-twin", created="2025-01-01T00:00:00Z")


@pytest.mark.parametrize(
    ("stored", "only", "active", "ignored"),
    [
        pytest.param((), "", None, [], id="none"),
        pytest.param((NEW, OLD), "", "old", ["new"], id="the oldest"),
        pytest.param((OLD, TWIN), "", "a-twin", ["old"], id="of equally old ones the first by name"),
        pytest.param((replace(OLD, deleting=True), NEW), "", "new", [], id="one that is being deleted counts no more"),
        pytest.param((OLD, NEW), "new", "new", [], id="the one that was asked for"),
        pytest.param((OLD,), "new", None, [], id="the one that was asked for is not there"),
    ],
)
def test_choice(stored: tuple[Policy, ...], only: str, active: str | None, ignored: list[str]) -> None:
    """One is active, the others wait; with `--policy` there are no others."""
    choice = policies.choose(
        replace(snapshot(policies=stored), settings=Settings(namespace="gpu-operator", policy=only))
    )

    assert active == (choice.active.name if choice.active else None)
    assert ignored == [policy.name for policy in choice.ignored]


def test_second_policy_waits_and_takes_over() -> None:
    """A second policy disturbs nothing, says that it waits for which, and takes over as soon as the first goes."""
    first, last = settle(snapshot(node(), policies=(OLD,)))

    both, last = settle(replace(first, policies=(*first.policies, NEW)), before=last.standing)
    assert {item.name: item.state for item in both.policies} == {"old": "ready", "new": "ignored"}
    [waiting] = [item for item in both.policies if item.name == "new"]
    assert '"old" is the active one' in next(c.message for c in waiting.conditions if c.type == "Error")
    assert both.gpu_nodes == first.gpu_nodes

    alone = build_plan(replace(both, policies=(waiting,)), LATER, last.standing)
    assert [status.state for status in alone.policies] == ["ready"]
    assert alone.components[0].owner_uid == "uid-new"
    assert alone.gpu_nodes == alone.gpu_node_removals == alone.prune == ()


def test_misspelt() -> None:
    """Whoever names a policy that is not there loses nothing of the one that is; without that one, all goes."""
    before, _ = settle(snapshot(node(), policies=(OLD,)))
    misspelt = replace(before, settings=replace(before.settings, policy="odl"))

    plan = build_plan(misspelt, LATER)

    assert 'there is no ClusterPolicy "odl", as --policy' in plan.misnamed
    assert "belongs to old: nothing is changed" in plan.misnamed
    assert plan.prune == plan.gpu_node_removals == plan.node_labels == plan.policies == plan.gpu_node_conditions == ()
    for gone in ((), (replace(OLD, deleting=True),), (NEW,)):
        plan = build_plan(replace(misspelt, policies=gone), LATER)
        assert plan.misnamed == ""
        assert plan.prune
        assert plan.gpu_node_removals


@pytest.mark.parametrize(
    ("active", "expected"),
    [
        pytest.param(policy(), "", id="names none"),
        pytest.param(sharing_policy("any", name="here"), "", id="is there"),
        pytest.param(sharing_policy("any", name="elsewhere"), "elsewhere", id="is not there"),
        pytest.param(replace(policy(), spec=None), "", id="cannot be read"),
    ],
)
def test_missing_config_map(active: Policy, expected: str) -> None:
    """What the controller has to look for in other namespaces."""
    found = snapshot(policies=(active,), config_maps=(config_map("here", any=time_slicing(4)),))

    assert expected == policies.missing_config_map(found)
    assert policies.missing_config_map(replace(found, policies=())) == ""
