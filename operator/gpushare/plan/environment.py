"""The environment of the agent's container, in the order in which NVIDIA's operator writes it. Used by `components`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from gpushare import names
from gpushare.api.clusterpolicy import ClusterPolicy

_OF_THE_POD: Final = "every pod has its own"
_OF_THE_NODE: Final = "each node gets its configuration by devicePlugin.config"
RESERVED: Final = {
    names.ENV_NODE_NAME: _OF_THE_POD,
    names.ENV_POD_IP: _OF_THE_POD,
    "KUBECONFIG": _OF_THE_POD,
    "CONFIG_FILE": _OF_THE_NODE,
}
"""What one value for all nodes would break, and why."""
_LIST_STRATEGY: Final = "DEVICE_LIST_STRATEGY"
_ENVVAR: Final = "envvar"
_CDI: Final = "cdi-"
"""How the strategies begin that hand GPUs over by CDI."""


def build_environment(policy: ClusterPolicy) -> dict[str, str]:
    """Variables by name. What the user writes wins over everything, in place, else at the end.

    There is no `CONFIG_FILE` and no `MIG_STRATEGY`: both are part of what the controller assigns to each node. CDI is never
    asked for: every agent would refuse it, and warn on every node.
    """
    plugin = policy.device_plugin
    env = {
        "PASS_DEVICE_SPECS": "true",
        "FAIL_ON_INIT_ERROR": "true",
        _LIST_STRATEGY: _ENVVAR,
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
    env[names.ENV_METRICS_PORT] = str(names.PORT_AGENT)
    said = _said(policy)
    if _LIST_STRATEGY in said:
        said[_LIST_STRATEGY] = _served(said[_LIST_STRATEGY])
    return env | said


def find_notes(policy: ClusterPolicy) -> Iterator[str]:
    """What of the policy does not reach the container as it is written, and what is there instead."""
    for variable in policy.device_plugin.env:
        if variable.name in RESERVED:
            yield f"spec.devicePlugin.env: {variable.name} is not taken, since {RESERVED[variable.name]}"
    strategies = _said(policy).get(_LIST_STRATEGY)
    if strategies is None:
        if policy.is_enabled("cdi"):
            yield (
                "cdi.enabled of the policy (true where it is not written) asks for CDI, which this version does not serve; "
                "containers get NVIDIA_VISIBLE_DEVICES instead (cdi.enabled: false says so)"
            )
    elif (served := _served(strategies)) != strategies:
        yield (
            f'spec.devicePlugin.env: {_LIST_STRATEGY} "{strategies}" asks for CDI, which this version does not serve; '
            f'"{served}" is used instead'
        )


def _said(policy: ClusterPolicy) -> dict[str, str]:
    return {variable.name: variable.value for variable in policy.device_plugin.env if variable.name not in RESERVED}


def _served(strategies: str) -> str:
    words = strategies.split(",")
    served = [word for word in words if not word.strip().startswith(_CDI)]
    return strategies if served == words else ",".join(served) or _ENVVAR
