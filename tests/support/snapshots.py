"""Snapshots for tests: builders with sane defaults, and a cluster that does at once what a plan says."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from gpushare import names
from gpushare.domain import manifests
from gpushare.domain.conditions import Condition
from gpushare.domain.gpunode import CAPACITY_SHOWN, CONFIG_APPLIED, DISCOVERED, GPUNode, GPUNodeStatus
from gpushare.plan.build import Plan, build_plan
from gpushare.plan.components import keys_of
from gpushare.plan.events import Standing
from gpushare.plan.nodes import NodeLabels
from gpushare.plan.snapshot import AgentPod, ConfigMap, LiveObject, Node, Policy, Rollout, Settings, Snapshot

NAMESPACE = "gpu-operator"
IMAGE = "registry.example/gpu-sharing-operator:1.0"
NOW = "2026-11-29T12:00:00Z"
LATER = "2026-11-29T12:00:05Z"
SETTINGS = Settings(namespace=NAMESPACE, image=IMAGE)
PRESENT = names.LABEL_PRESENT
CONFIG = names.LABEL_CONFIG
PCI = names.LABELS_NFD_GPU[0]
MAP = "time-slicing"


def time_slicing(replicas: int, *, mig_strategy: str = "") -> str:
    flags = f"flags:\n  migStrategy: {mig_strategy}\n" if mig_strategy else ""
    return (
        f"version: v1\n{flags}sharing:\n  timeSlicing:\n    resources:\n"
        f"    - name: nvidia.com/gpu\n      replicas: {replicas}\n"
    )


def by_mps(replicas: int) -> str:
    """The same shared by MPS."""
    return time_slicing(replicas).replace("timeSlicing", "mps")


def policy(name: str = "cluster-policy", *, created: str = "2026-01-01T00:00:00Z", **spec: Any) -> Policy:
    """A policy; `device_plugin=...` and the like are parts of its spec, by the names that the API has."""
    return Policy(name=name, uid=f"uid-{name}", generation=1, created=created, spec={"devicePlugin": {}, **spec})


def sharing_policy(default: str = "", *, name: str = MAP, **spec: Any) -> Policy:
    """A policy that names a ConfigMap, and a key for nodes without a label."""
    return policy(**{"devicePlugin": {"config": {"name": name, "default": default}}, **spec})


def config_map(name: str = MAP, **data: str) -> ConfigMap:
    """A ConfigMap; underscores in keys are dashes."""
    return ConfigMap(name=name, uid=f"uid-{name}", data={key.replace("_", "-"): text for key, text in data.items()})


def node(name: str = "gpu01", *, gpu: bool = True, owned: tuple[str, ...] = (), **labels: str) -> Node:
    """A node that discovery has seen; `config="x"` is the label of people, other labels go by their full name."""
    config = {CONFIG: labels.pop("config")} if "config" in labels else {}
    found = {PCI: "true"} if gpu else {}
    return Node(
        name=name,
        uid=f"uid-{name}",
        labels={**found, **config, **labels},
        owned=frozenset(owned),
        discovered=True,
        resource_version="7",
    )


def snapshot(*nodes: Node, policies: tuple[Policy, ...] | None = None, **parts: Any) -> Snapshot:
    return Snapshot(settings=SETTINGS, nodes=nodes, policies=(policy(),) if policies is None else policies, **parts)


def carry_out(before: Snapshot, plan: Plan, *, labels: Mapping[str, str] | None = None) -> Snapshot:
    """The cluster after a plan: everything is written, every agent has applied what it got and found `labels`."""
    specs = {spec.name: spec for spec in plan.gpu_nodes}
    conditions = {item.name: item.conditions for item in plan.gpu_node_conditions}
    changes = {change.name: change for change in plan.node_labels}
    statuses = {status.name: status for status in plan.policies}
    removed = {removal.name for removal in plan.gpu_node_removals}
    stored = {gpu_node.name: gpu_node for gpu_node in before.gpu_nodes if gpu_node.name not in removed}
    for name in specs.keys() | conditions.keys():
        spec = specs.get(name)
        base = stored.get(name) or GPUNode(name=name, uid=f"gpunode-{name}", generation=0)
        if spec is not None:
            base = replace(base, node_uid=spec.node_uid, config=spec.config, generation=base.generation + 1)
        status = _without_loss(base.status) if name in conditions else base.status
        stored[name] = replace(base, status=_with(status, *conditions.get(name, ())))
    gpu_nodes = tuple(_applied(gpu_node, labels or {}) for gpu_node in stored.values())
    return replace(
        before,
        nodes=tuple(_labelled(item, changes[item.name]) if item.name in changes else item for item in before.nodes),
        gpu_nodes=gpu_nodes,
        agent_pods=tuple(AgentPod(node=g.name, name=f"agent-{g.name}", ready=True) for g in gpu_nodes),
        policies=tuple(
            replace(p, state=s.state, namespace=s.namespace, conditions=s.conditions)
            if (s := statuses.get(p.name)) is not None
            else p
            for p in before.policies
        ),
        objects=_objects(before, plan, len(gpu_nodes)),
    )


def _without_loss(status: GPUNodeStatus) -> GPUNodeStatus:
    """Without those conditions that are taken back by being left out."""
    passing = {DISCOVERED, CAPACITY_SHOWN}
    return replace(status, conditions=tuple(each for each in status.conditions if each.type not in passing))


def _with(status: GPUNodeStatus, *conditions: Condition) -> GPUNodeStatus:
    """Each in its place, new ones last, as the API server merges them."""
    merged = {condition.type: condition for condition in (*status.conditions, *conditions)}
    return replace(status, conditions=tuple(merged.values()))


def _applied(gpu_node: GPUNode, labels: Mapping[str, str]) -> GPUNode:
    assert gpu_node.config is not None
    done = Condition(
        type=CONFIG_APPLIED, status="True", reason="Applied", observed_generation=gpu_node.generation,
        last_transition_time=NOW,
    )  # fmt: skip
    status = replace(gpu_node.status, applied_revision=gpu_node.config.revision, labels=labels)
    return replace(gpu_node, status=_with(status, done))


def _labelled(item: Node, change: NodeLabels) -> Node:
    kept = {key: value for key, value in item.labels.items() if key not in item.owned}
    labels = {**kept, **change.labels}
    return replace(item, labels=labels, owned=frozenset(change.labels), opted_out=change.opted_out)


def _objects(before: Snapshot, plan: Plan, pods: int) -> tuple[LiveObject, ...]:
    pruned = {item.key for item in plan.prune}
    kept = {item.key: item for item in before.objects if item.key not in pruned}
    numbers = Rollout(generation=1, observed=1, desired=pods, updated=pods, available=pods)
    for component in plan.components:
        for key in keys_of(component):
            rollout = numbers if key.kind == manifests.DAEMON_SET else None
            kept[key] = LiveObject(
                key=key, uid=f"uid-{key.kind.kind}", managed=True, component=component.name, rollout=rollout,
                controller=component.owner_uid,
            )  # fmt: skip
    return tuple(kept.values())


def settle(
    start: Snapshot, *, labels: Mapping[str, str] | None = None, before: Standing | None = None
) -> tuple[Snapshot, Plan]:
    """Passes until nothing is left to write. Returns the cluster then, and the last plan."""
    current, standing = start, before
    for _ in range(6):
        plan = build_plan(current, NOW, standing)
        after = carry_out(current, plan, labels=labels)
        if after == current:
            return current, plan
        current, standing = after, plan.standing
    raise AssertionError(f"it does not settle: {plan}")


def condition_of(found: Snapshot, type_: str, name: str = "cluster-policy") -> Condition:
    """A stored condition of a policy."""
    [item] = [item for item in found.policies if item.name == name]
    return next(condition for condition in item.conditions if condition.type == type_)
