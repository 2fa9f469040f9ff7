"""What the operator runs for a policy: which components, with which values for their templates. Called by `build`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from gpushare import names
from gpushare.api import images
from gpushare.api.clusterpolicy import ClusterPolicy
from gpushare.domain import manifests
from gpushare.domain.manifests import ObjectKey
from gpushare.errors import ConfigurationError, Problem
from gpushare.plan import checking, filling
from gpushare.plan.environment import find_notes
from gpushare.plan.snapshot import Policy, Snapshot

DEVICE_PLUGIN: Final = "device-plugin"
MPS: Final = "mps-control-daemon"
RUNTIME_CLASSES: Final = "runtime-classes"
MONITORING: Final = "monitoring"
FRACTIONS: Final = "fractions"
STATES: Final = {
    RUNTIME_CLASSES: "pre-requisites",
    MONITORING: "state-operator-metrics",
    DEVICE_PLUGIN: "state-device-plugin",
    MPS: "state-mps-control-daemon",
    FRACTIONS: "state-device-plugin",
}
"""What NVIDIA's operator calls a component in its messages."""

_ACCOUNT: Final = names.SERVICE_ACCOUNT_DEVICE_PLUGIN
_OBJECTS: Final = {
    DEVICE_PLUGIN: (
        (manifests.SERVICE_ACCOUNT, _ACCOUNT),
        (manifests.ROLE, _ACCOUNT),
        (manifests.ROLE_BINDING, _ACCOUNT),
        (manifests.CLUSTER_ROLE, names.CLUSTER_ROLE_AGENT),
        (manifests.CLUSTER_ROLE_BINDING, names.CLUSTER_ROLE_AGENT),
        (manifests.SERVICE, names.SERVICE_DEVICE_PLUGIN),
        (manifests.DAEMON_SET, names.DAEMONSET_DEVICE_PLUGIN),
    ),
    # It runs with the rights of the agent, as upstream's does.
    MPS: ((manifests.SERVICE, names.DAEMONSET_MPS), (manifests.DAEMON_SET, names.DAEMONSET_MPS)),
    # Rights alone: agents elsewhere need not see any pod.
    FRACTIONS: (
        (manifests.CLUSTER_ROLE, names.CLUSTER_ROLE_FRACTIONS),
        (manifests.CLUSTER_ROLE_BINDING, names.CLUSTER_ROLE_FRACTIONS),
    ),
    MONITORING: ((manifests.SERVICE_MONITOR, names.SERVICE_DEVICE_PLUGIN),),
}
"""What has a name that is ours alone. RuntimeClasses are named by the policy, and those of others are left alone."""
KINDS: Final = (
    *dict.fromkeys(kind for objects in _OBJECTS.values() for kind, _ in objects),
    manifests.RUNTIME_CLASS,
)
"""Every kind that a component has an object of."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Component:
    """One folder of templates and what to fill in."""

    name: str
    values: Mapping[str, Any]
    owner: ObjectKey
    """The policy: everything that is rendered goes with it."""
    owner_uid: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Built:
    """What became of one component."""

    component: Component | None = None
    """None with problems: it stays as it is. None without: it is not wanted."""
    problems: tuple[Problem, ...] = ()
    notes: tuple[str, ...] = ()
    """What of the policy is not taken as written."""


def all_keys(namespace: str) -> frozenset[ObjectKey]:
    """Every object with a name that is ours alone."""
    return frozenset[ObjectKey]().union(*(_fixed_keys(component, namespace) for component in _OBJECTS))


def keys_of(component: Component) -> frozenset[ObjectKey]:
    """Every object of a component; held against its templates by a test."""
    if component.name == RUNTIME_CLASSES:
        return frozenset(ObjectKey(manifests.RUNTIME_CLASS, name) for name in component.values["runtime_classes"])
    return _fixed_keys(component.name, component.values["namespace"])


def _fixed_keys(component: str, namespace: str) -> frozenset[ObjectKey]:
    return frozenset(ObjectKey(kind, name, namespace if kind.namespaced else "") for kind, name in _OBJECTS[component])


def build_device_plugin(snapshot: Snapshot, active: Policy, policy: ClusterPolicy) -> Built:
    """The node agent: its DaemonSet and what it may do."""
    if not policy.is_enabled("device_plugin"):
        return Built()
    problems: list[Problem] = []
    image = ""
    try:
        image = images.resolve_image(policy.device_plugin, "spec.devicePlugin", snapshot.settings.image)
    except ConfigurationError as error:
        problems += error.problems
    problems += checking.check(policy)
    if problems:
        return Built(problems=tuple(problems))
    notes = list(find_notes(policy))
    if not images.is_own_image(image) and snapshot.settings.image:
        notes.append(f"spec.devicePlugin: {image} is not used; the agent runs {snapshot.settings.image}")
        image = snapshot.settings.image
    component = Component(
        name=DEVICE_PLUGIN,
        values=filling.values_of(snapshot, policy, image),
        owner=ObjectKey(manifests.CLUSTER_POLICY, active.name),
        owner_uid=active.uid,
    )
    return Built(component=component, notes=tuple(notes))


def build_others(
    snapshot: Snapshot, policy: ClusterPolicy, device_plugin: Component, *, uses_mps: bool, uses_fractions: bool
) -> tuple[Component, ...]:
    """What is wanted beside the node agent, by the same owner."""
    found = []
    # Somebody's class stays theirs; but pods that name one must find it, whoever has brought NVIDIA's runtime.
    if classes := [name for name in filling.runtime_classes_of(policy) if name not in snapshot.runtime_classes]:
        found.append(replace(device_plugin, name=RUNTIME_CLASSES, values={"runtime_classes": classes}))
    if snapshot.service_monitors and policy.operator.metrics.service_monitor.enabled is not False:
        values = filling.monitoring_values(snapshot.settings.namespace, policy)
        found.append(replace(device_plugin, name=MONITORING, values=values))
    if uses_fractions:
        found.append(replace(device_plugin, name=FRACTIONS, values={"namespace": snapshot.settings.namespace}))
    if uses_mps:
        # The same image beside the agent, and set up alike.
        found.append(replace(device_plugin, name=MPS, values={**device_plugin.values, "mps_port": names.PORT_MPS}))
    return tuple(found)
