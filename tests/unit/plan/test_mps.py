"""The DaemonSet of the MPS daemons: there where a configuration in use needs it, as long as a node needs it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from gpushare import names
from gpushare.domain import manifests
from gpushare.domain.conditions import Condition
from gpushare.domain.gpunode import MPS_READY
from gpushare.domain.manifests import ObjectKey
from gpushare.plan.build import Plan, build_plan
from gpushare.plan.components import DEVICE_PLUGIN, MPS, all_keys, keys_of
from gpushare.plan.snapshot import ConfigMap, Node, Rollout, Snapshot
from support.snapshots import (
    NAMESPACE,
    NOW,
    by_mps,
    config_map,
    node,
    settle,
    sharing_policy,
    snapshot,
    time_slicing,
)

BOTH = config_map(mps=by_mps(4), slices=time_slicing(4), bad=by_mps(1_000) + "  what: ever\n")
OTHERS = {
    ObjectKey(manifests.SERVICE_MONITOR, names.SERVICE_DEVICE_PLUGIN, NAMESPACE),
    ObjectKey(manifests.CLUSTER_ROLE, names.CLUSTER_ROLE_FRACTIONS),
    ObjectKey(manifests.CLUSTER_ROLE_BINDING, names.CLUSTER_ROLE_FRACTIONS),
}
"""Of components that are not wanted here."""
CAPABLE = {names.LABEL_MPS_CAPABLE: "true"}


def cluster(*nodes: Node, default: str = "mps", maps: tuple[ConfigMap, ...] = (BOTH,), **spec: object) -> Snapshot:
    return snapshot(*nodes, policies=(sharing_policy(default, **spec),), config_maps=maps)


def components_of(plan: Plan) -> list[str]:
    return [component.name for component in plan.components if component.name in {DEVICE_PLUGIN, MPS}]


@pytest.mark.parametrize(
    ("start", "expected"),
    [
        pytest.param(cluster(node()), True, id="the default"),
        pytest.param(cluster(node(config="mps"), default=""), True, id="a label"),
        pytest.param(cluster(node(), node("gpu02", config="mps"), default="slices"), True, id="one of two nodes"),
        pytest.param(cluster(node(), default="slices"), False, id="a key that nobody uses"),
        pytest.param(cluster(node(config="slices")), False, id="a default that nobody uses"),
        pytest.param(cluster(node(), default="bad"), False, id="a text that is refused"),
        pytest.param(cluster(node(), maps=()), False, id="no ConfigMap"),
        pytest.param(cluster(), False, id="no node"),
        pytest.param(cluster(node(), devicePlugin={"enabled": False}), False, id="no device plugin"),
    ],
)
def test_where(start: Snapshot, *, expected: bool) -> None:
    """Only where a node gets a valid configuration that shares by MPS."""
    assert (MPS in components_of(build_plan(start, NOW))) is expected


def test_beside_the_agent() -> None:
    """The same image and settings, and the directory that the agent mounts into containers."""
    env = [{"name": "MPS_ROOT", "value": "/var/mps/"}]
    spec = {"devicePlugin": {"config": {"name": BOTH.name, "default": "mps"}, "mps": {"root": "/x"}, "env": env}}

    found = {component.name: component for component in build_plan(cluster(node(), **spec), NOW).components}

    agent, mps = found[DEVICE_PLUGIN], found[MPS]
    assert mps.values == {**agent.values, "mps_port": names.PORT_MPS}
    assert mps.values["mps_root"] == "/var/mps"


def test_stays_until_the_agent_has_left() -> None:
    """An agent may hold a configuration back: its pods' clients keep their daemon until it says otherwise."""
    settled, plan = settle(cluster(node()), labels=CAPABLE)
    assert components_of(plan) == [DEVICE_PLUGIN, MPS]
    [mps] = [component for component in plan.components if component.name == MPS]
    other = replace(settled, policies=tuple(replace(p, spec=sharing_policy("slices").spec) for p in settled.policies))

    assert components_of(build_plan(other, NOW)) == [DEVICE_PLUGIN, MPS]

    left = replace(other, gpu_nodes=tuple(replace(g, status=replace(g.status, labels={})) for g in other.gpu_nodes))
    plan = build_plan(left, NOW)
    assert components_of(plan) == [DEVICE_PLUGIN]
    assert {item.key for item in plan.prune} == keys_of(mps)


def test_a_bad_policy_takes_nothing_away() -> None:
    """Clients of running daemons do not pay for a typing error."""
    settled, _ = settle(cluster(node()), labels=CAPABLE)
    assert {item.key for item in settled.objects} > all_keys(NAMESPACE) - OTHERS
    bad = {"config": {"name": BOTH.name, "default": "mps"}, "args": ["--bogus"]}

    plan = build_plan(
        replace(settled, policies=tuple(replace(p, spec={"devicePlugin": bad}) for p in settled.policies)), NOW
    )

    assert (plan.components, plan.prune) == ((), ())


def message_of(plan: Plan) -> str:
    (status,) = plan.policies
    return next(condition.message for condition in status.conditions if condition.type == "Error")


def test_waits_for_the_daemons() -> None:
    """A node whose shares are not offered yet is not done, and says why."""
    settled, _ = settle(cluster(node()), labels=CAPABLE)
    reason = "the shares of nvidia.com/gpu are not offered: its MPS daemon does not run"
    condition = Condition(
        type=MPS_READY, status="False", reason="WaitingForMps", message=reason, last_transition_time=NOW
    )
    (gpu_node,) = settled.gpu_nodes
    status = replace(gpu_node.status, conditions=(*gpu_node.status.conditions, condition))

    plan = build_plan(replace(settled, gpu_nodes=(replace(gpu_node, status=status),)), NOW)

    assert message_of(plan) == (
        f"ClusterPolicy is not ready; states not ready: [state-device-plugin]; waiting for gpu01 ({reason})"
    )


@pytest.mark.parametrize(
    ("rollout", "text"),
    [
        pytest.param(None, "is being created", id="not there"),
        pytest.param(
            Rollout(generation=1, observed=1, desired=1, updated=1, unavailable=1), "0 available", id="not ready"
        ),
    ],
)
def test_daemonset_is_not_there_yet(rollout: Rollout | None, text: str) -> None:
    """What the daemons lack is told under upstream's name of their state."""
    settled, _ = settle(cluster(node()), labels=CAPABLE)
    key = ObjectKey(manifests.DAEMON_SET, names.DAEMONSET_MPS, NAMESPACE)
    objects = [item if item.key != key else replace(item, rollout=rollout) for item in settled.objects]

    plan = build_plan(replace(settled, objects=tuple(objects)), NOW)

    assert message_of(plan).startswith("ClusterPolicy is not ready; states not ready: [state-mps-control-daemon]; ")
    assert f"DaemonSet {NAMESPACE}/{names.DAEMONSET_MPS}" in message_of(plan)
    assert text in message_of(plan)


def test_without_feature_discovery() -> None:
    """Whoever wants no labels gets none but the one that MPS daemons run by, and that only while they are needed."""
    labels = {**CAPABLE, names.LABEL_PRODUCT: "Tesla-T4-SHARED"}

    settled, _ = settle(cluster(node(), gfd={"enabled": False}), labels=labels)
    assert settled.nodes[0].labels[names.LABEL_MPS_CAPABLE] == "true"
    assert names.LABEL_PRODUCT not in settled.nodes[0].labels

    settled, _ = settle(cluster(node(), gfd={"enabled": False}), labels={names.LABEL_MPS_CAPABLE: "false"})
    assert names.LABEL_MPS_CAPABLE not in settled.nodes[0].labels
