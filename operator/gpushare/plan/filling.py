"""What the templates are filled with, from a policy that is known to be right. Called by `components`."""

from __future__ import annotations

from typing import Any, Final

from gpushare import names
from gpushare.api.clusterpolicy import ClusterPolicy, DaemonSets
from gpushare.plan import discovery
from gpushare.plan.environment import build_environment, read_flags
from gpushare.plan.snapshot import Snapshot

_PULL_POLICIES: Final = frozenset({"Always", "Never", "IfNotPresent"})
_VOLATILE: Final = frozenset({"helm.sh/chart"})
"""Labels that change with every release of a chart: in a pod template they would restart every agent."""
_OURS: Final = frozenset({"app", "app.kubernetes.io/part-of", names.LABEL_MANAGED_BY, names.LABEL_COMPONENT})
"""Labels that selectors and pruning stand on."""
_CRIO: Final = "cri-o"


def values_of(snapshot: Snapshot, policy: ClusterPolicy, image: str) -> dict[str, Any]:
    """Of the node agent and, but for its port, of the MPS daemons."""
    plugin, common, paths = policy.device_plugin, policy.daemonsets, policy.host_paths
    env = build_environment(policy)
    said = read_flags(plugin.args, env)
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
        "runtime_class": _runtime_class(snapshot, policy),
        "driver_root": paths.driver_install_dir,
        "host_root": paths.root_fs,
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


def runtime_classes_of(policy: ClusterPolicy) -> tuple[str, ...]:
    """Names of the RuntimeClasses that pods may count on, as with NVIDIA's operator."""
    if policy.cdi.nri_plugin_enabled:
        return ()
    more = names.RUNTIME_CLASSES_CDI if policy.is_enabled("cdi") else ()
    return tuple(dict.fromkeys((policy.operator.runtime_class, *more)))


def _runtime_class(snapshot: Snapshot, policy: ClusterPolicy) -> str:
    """The class of the agent's own pods; empty where they do without.

    Only one that somebody else has made: it says that the runtime of the nodes knows its handler, without which no pod would
    start. Where there is none, the agent finds the driver's library in the driver's root or on the host.
    """
    name = policy.operator.runtime_class
    if policy.cdi.nri_plugin_enabled or name not in snapshot.runtime_classes:
        return ""
    # There, NVIDIA's toolkit sets up a hook in its place.
    runtimes = {node.runtime for node in snapshot.nodes if discovery.has_gpus(node)}
    return "" if runtimes == {_CRIO} and not policy.is_enabled("cdi") else name


def monitoring_values(namespace: str, policy: ClusterPolicy) -> dict[str, Any]:
    """Of the ServiceMonitor."""
    monitor = policy.operator.metrics.service_monitor
    endpoint: dict[str, Any] = {}
    if monitor.interval:
        endpoint["interval"] = monitor.interval
    if monitor.scrape_timeout:
        endpoint["scrapeTimeout"] = monitor.scrape_timeout
    if monitor.honor_labels is not None:
        endpoint["honorLabels"] = monitor.honor_labels
    return {
        "namespace": namespace,
        "labels": {key: value for key, value in monitor.additional_labels.items() if key not in _OURS},
        "endpoint": endpoint,
        "relabelings": [each for each in monitor.relabelings if each],
    }
