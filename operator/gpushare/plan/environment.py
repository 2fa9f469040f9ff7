"""The environment of the agent's container, in the order in which NVIDIA's operator writes it. Used by `components`."""

from __future__ import annotations

from typing import Final

from gpushare import names
from gpushare.api.clusterpolicy import ClusterPolicy

RESERVED: Final = frozenset({names.ENV_NODE_NAME})
"""Filled in by Kubernetes; a value for all nodes would be wrong on all but one."""


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
        env |= {"DEVICE_LIST_STRATEGY": "cdi-annotations,cdi-cri", "CDI_ANNOTATION_PREFIX": "cdi.k8s.io/"}
        if policy.is_enabled("toolkit"):
            env["NVIDIA_CDI_HOOK_PATH"] = f"{policy.toolkit.install_dir}/toolkit/nvidia-cdi-hook"
    return env | {variable.name: variable.value for variable in plugin.env if variable.name not in RESERVED}
