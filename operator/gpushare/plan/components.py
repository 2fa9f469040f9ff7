"""What the operator runs for a policy: which components, with which values for their templates. Called by `build`."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from gpushare import names
from gpushare.api import agent_flags, flags, images
from gpushare.api.clusterpolicy import ClusterPolicy, DaemonSets
from gpushare.domain import manifests
from gpushare.domain.manifests import ObjectKey
from gpushare.errors import ConfigurationError, Problem, UsageError
from gpushare.plan.environment import RESERVED, build_environment, find_notes
from gpushare.plan.snapshot import Policy, Snapshot

DEVICE_PLUGIN: Final = "device-plugin"
MPS: Final = "mps-control-daemon"
STATES: Final = {DEVICE_PLUGIN: "state-device-plugin", MPS: "state-mps-control-daemon"}
"""What NVIDIA's operator calls a component in its messages."""

_PULL_POLICIES: Final = frozenset({"Always", "Never", "IfNotPresent"})
_VOLATILE: Final = frozenset({"helm.sh/chart"})
"""Labels that change with every release of a chart: in a pod template they would restart every agent."""
_OURS: Final = frozenset({"app", "app.kubernetes.io/part-of", names.LABEL_MANAGED_BY, names.LABEL_COMPONENT})
"""Labels that selectors and pruning stand on."""
_ARGS: Final = "spec.devicePlugin.args"
_ENV: Final = "spec.devicePlugin.env"
_MAX_UNAVAILABLE: Final = re.compile(r"(?!0+%?$)\d+%?")


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
    """Every object of every component."""
    return frozenset[ObjectKey]().union(*(keys_of(component, namespace) for component in STATES))


def keys_of(component: str, namespace: str) -> frozenset[ObjectKey]:
    """Every object of a component; held against its templates by a test."""
    if component == MPS:
        # It runs with the rights of the agent, as upstream's does.
        return frozenset({ObjectKey(manifests.DAEMON_SET, names.DAEMONSET_MPS, namespace)})
    account = names.SERVICE_ACCOUNT_DEVICE_PLUGIN
    return frozenset(
        {
            ObjectKey(manifests.SERVICE_ACCOUNT, account, namespace),
            ObjectKey(manifests.ROLE, account, namespace),
            ObjectKey(manifests.ROLE_BINDING, account, namespace),
            ObjectKey(manifests.CLUSTER_ROLE, account),
            ObjectKey(manifests.CLUSTER_ROLE_BINDING, account),
            ObjectKey(manifests.DAEMON_SET, names.DAEMONSET_DEVICE_PLUGIN, namespace),
        }
    )


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
    env = build_environment(policy)
    problems += [*_check_update(policy.daemonsets), *_check_command(policy.device_plugin.args, env)]
    if problems:
        return Built(problems=tuple(problems))
    notes = list(find_notes(policy))
    if not images.is_own_image(image) and snapshot.settings.image:
        notes.append(f"spec.devicePlugin: {image} is not used; the agent runs {snapshot.settings.image}")
        image = snapshot.settings.image
    component = Component(
        name=DEVICE_PLUGIN,
        values=_values_of(snapshot, policy, image, env),
        owner=ObjectKey(manifests.CLUSTER_POLICY, active.name),
        owner_uid=active.uid,
    )
    return Built(component=component, notes=tuple(notes))


def build_mps(device_plugin: Component) -> Component:
    """What keeps the MPS daemons of nodes that share by MPS: the same image beside the agent, and set up alike."""
    return replace(device_plugin, name=MPS, values={**device_plugin.values, "mps_port": names.PORT_MPS})


def _values_of(snapshot: Snapshot, policy: ClusterPolicy, image: str, env: Mapping[str, str]) -> dict[str, Any]:
    plugin, common, paths = policy.device_plugin, policy.daemonsets, policy.host_paths
    runtime_class = policy.operator.runtime_class
    said = _read_flags(plugin.args, env)
    return {
        "namespace": snapshot.settings.namespace,
        "image": image,
        "pull_policy": plugin.image_pull_policy if plugin.image_pull_policy in _PULL_POLICIES else "IfNotPresent",
        "pull_secrets": list(dict.fromkeys(plugin.image_pull_secrets)),
        "args": list(plugin.args),
        "env": [{"name": name, "value": value} for name, value in env.items()],
        "metrics_port": said["metrics_port"],
        # What the agent mounts into containers has to be what the daemons have.
        "mps_root": (said["mps_root"] or plugin.mps.root).rstrip("/"),
        "resources": plugin.resources.model_dump(exclude_defaults=True) if plugin.resources else {},
        "host_network": plugin.host_network,
        "tolerations": list(common.tolerations)
        or [{"key": names.RESOURCE_GPU, "operator": "Exists", "effect": "NoSchedule"}],
        "priority_class": common.priority_class_name or "system-node-critical",
        "labels": {key: value for key, value in common.labels.items() if key not in _OURS},
        "pod_labels": {key: value for key, value in common.labels.items() if key not in _OURS | _VOLATILE},
        "annotations": dict(common.annotations),
        "security_context": dict(common.pod_security_context),
        "update_strategy": _update_strategy(common),
        # A class that does not exist would keep every pod from being created. Where there is none, the agent finds the
        # driver's library in the driver's root or on the host.
        "runtime_class": runtime_class if runtime_class in snapshot.runtime_classes else "",
        "driver_root": paths.driver_install_dir,
        "host_root": paths.root_fs or "/",
        "kubelet_root": paths.kubelet_root_dir,
    }


def _update_strategy(common: DaemonSets) -> dict[str, Any]:
    if common.update_strategy == "OnDelete":
        return {"type": "OnDelete"}
    limit = common.rolling_update.max_unavailable
    if not limit:
        return {"type": "RollingUpdate"}
    return {
        "type": "RollingUpdate",
        "rollingUpdate": {"maxUnavailable": limit if limit.endswith("%") else int(limit)},
    }


def _check_update(common: DaemonSets) -> list[Problem]:
    limit = common.rolling_update.max_unavailable
    if not limit or common.update_strategy == "OnDelete" or _MAX_UNAVAILABLE.fullmatch(limit):
        return []
    message = f'"{limit}" is neither a number above 0 nor a percentage; write "1" or "25%"'
    return [Problem(path="spec.daemonsets.rollingUpdate.maxUnavailable", message=message)]


def _check_command(args: Sequence[str], env: Mapping[str, str]) -> list[Problem]:
    """What every agent would end on, or lose its way by: better told here than by a node without GPUs."""
    if shell := _check_args(args):
        return shell
    problems: list[Problem] = []
    for path, argv, environ in ((_ARGS, args, {}), (_ENV, (), env)):
        try:
            said = _read_flags(argv, environ)
        except UsageError as error:
            problems.append(Problem(path=path, message=f"every agent would end on it: {error}"))
            continue
        if argv:
            own = [flag for flag in agent_flags.FLAGS if flag.key in said and RESERVED.keys() & set(flag.variables)]
            problems += [
                Problem(path=path, message=f"--{flag.names[0]}: remove it, since {RESERVED[flag.variables[0]]}")
                for flag in own
            ]
    return problems


def _read_flags(args: Sequence[str], env: Mapping[str, str]) -> Mapping[str, Any]:
    groups = flags.parse(agent_flags.FLAGS, args, env)
    return {key: value for group in groups.values() for key, value in group.items()}


def _check_args(args: Sequence[str]) -> list[Problem]:
    """Flags and their values only: what NVIDIA's operator puts here is a line for a shell, and there is none."""
    after_flag = False
    for index, arg in enumerate(args):
        is_flag = arg.startswith("-")
        if not (is_flag or after_flag) or (is_flag and any(char.isspace() for char in arg)):
            message = (
                f'"{arg}" is no flag; this is not a line for a shell, write flags such as "--pass-device-specs=true"'
            )
            return [Problem(path=f"{_ARGS}[{index}]", message=message)]
        after_flag = is_flag and "=" not in arg
    return []
