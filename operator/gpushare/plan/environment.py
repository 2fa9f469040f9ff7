"""The environment of the agent's container, in the order in which NVIDIA's operator writes it. Used by `components`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from gpushare import names
from gpushare.api import agent_flags, flags
from gpushare.api.clusterpolicy import ClusterPolicy

_OF_THE_POD: Final = "every pod has its own"
_OF_THE_NODE: Final = "each node gets its configuration by devicePlugin.config"
RESERVED: Final = {
    names.ENV_NODE_NAME: _OF_THE_POD,
    names.ENV_POD_IP: _OF_THE_POD,
    "KUBECONFIG": _OF_THE_POD,
    "CONFIG_FILE": _OF_THE_NODE,
    "MIG_STRATEGY": "mig.strategy of the policy says it, which each node checks before it follows",
}
"""What one value for all nodes would break, and why."""
_HOOK: Final = "toolkit/nvidia-cdi-hook"
"""Where the toolkit's directory has the program of CDI hooks."""


def build_environment(policy: ClusterPolicy) -> dict[str, str]:
    """Variables by name. What the user writes wins over everything, in place, else at the end.

    There is no `CONFIG_FILE` and no `MIG_STRATEGY`: both are part of what the controller assigns to each node.
    """
    plugin = policy.device_plugin
    env = {
        "PASS_DEVICE_SPECS": "true",
        "FAIL_ON_INIT_ERROR": "true",
        "DEVICE_LIST_STRATEGY": "envvar",
        "DEVICE_ID_STRATEGY": "uuid",
        "NVIDIA_VISIBLE_DEVICES": "all",
        "NVIDIA_DRIVER_CAPABILITIES": "all",
        "MPS_ROOT": plugin.mps.root,
    }
    if policy.is_enabled("gds"):
        env |= {"GDS_ENABLED": "true", "MOFED_ENABLED": "true"}
    if policy.is_enabled("gdrcopy"):
        env["GDRCOPY_ENABLED"] = "true"
    # On every node, whatever its strategy: with it, a changed strategy needs no new pod.
    env["NVIDIA_MIG_MONITOR_DEVICES"] = "all"
    if policy.is_enabled("cdi"):
        env |= _cdi(policy)
    # Where the container's driver root is on the host. A driver that is part of the host is found by the agent.
    env["NVIDIA_DRIVER_ROOT"] = policy.host_paths.driver_install_dir
    env[names.ENV_METRICS_PORT] = str(names.PORT_AGENT)
    return env | {variable.name: variable.value for variable in plugin.env if variable.name not in RESERVED}


def read_flags(args: Sequence[str], env: Mapping[str, str]) -> Mapping[str, Any]:
    """What the agent makes of its arguments and variables. Raises UsageError, as it does."""
    groups = flags.parse(agent_flags.FLAGS, args, env)
    return {key: value for group in groups.values() for key, value in group.items()}


def find_notes(policy: ClusterPolicy) -> Iterator[str]:
    """What of the policy does not reach the container as it is written, and what is there instead."""
    for variable in policy.device_plugin.env:
        if variable.name in RESERVED:
            yield f"spec.devicePlugin.env: {variable.name} is not taken, since {RESERVED[variable.name]}"
    if policy.daemonsets.pod_security_context.get("runAsNonRoot"):
        yield "spec.daemonsets.podSecurityContext.runAsNonRoot is not taken, since the kubelet's sockets belong to root"


def _cdi(policy: ClusterPolicy) -> dict[str, str]:
    env = {
        "CDI_ENABLED": "true",
        "DEVICE_LIST_STRATEGY": "cdi-annotations,cdi-cri",
        "CDI_ANNOTATION_PREFIX": "cdi.k8s.io/",
    }
    if policy.is_enabled("toolkit"):
        env["NVIDIA_CDI_HOOK_PATH"] = f"{policy.toolkit.install_dir.rstrip('/')}/{_HOOK}"
    return env
