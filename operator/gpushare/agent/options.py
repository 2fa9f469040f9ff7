"""The agent's command line and environment, with the flags, variables and precedence of NVIDIA's device plugin.

Pure: argv and environ in, a value out.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from gpushare import names
from gpushare.api import flags as flags_
from gpushare.api.flags import choice, choices, discovery, flag, switch, words
from gpushare.api.sharing import Flags, IdStrategy, ListStrategy, PluginFlags
from gpushare.domain.devices import MigStrategy
from gpushare.domain.pools import Allocation

KUBELET_SOCKET = "/var/lib/kubelet/device-plugins/kubelet.sock"


@dataclass(frozen=True, slots=True, kw_only=True)
class HealthChecks:
    """Which reports of GPUs count, in the words of the two variables."""

    disabled: str = ""
    """`all`, `xids`, or numbers of XIDs."""
    enabled: str = ""
    """Beats `disabled`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentOptions:
    """What was said on the command line or in the environment."""

    flags: Flags = Flags()  # noqa: RUF009 - frozen
    """None in a field: not said, so that the configuration decides."""
    imex_channel_ids: tuple[int, ...] | None = None
    imex_required: bool | None = None
    kubelet_socket: str = KUBELET_SOCKET
    """Path on the host; empty: never register."""
    config_file: str = ""
    """Empty: the configuration comes from the GPUNode."""
    cdi_feature_flags: tuple[str, ...] = ()
    cdi_disable_hooks: tuple[str, ...] = ()
    health_checks: HealthChecks = HealthChecks()
    node_name: str = ""
    kubeconfig: str = ""
    metrics_port: int = 0
    """0: no listener."""
    metrics_address: str = ""
    """Address to listen on; empty: all of them."""


def parse(argv: Sequence[str], environ: Mapping[str, str]) -> AgentOptions:
    """Reads arguments (without the program's name) and environment.

    Raises:
        UsageError: an unknown flag, or a value that cannot be.
    """
    groups = flags_.parse(_FLAGS, argv, environ)
    return AgentOptions(
        flags=Flags(**groups["flags"], plugin=PluginFlags(**groups["plugin"])),
        health_checks=HealthChecks(
            disabled=environ.get("DP_DISABLE_HEALTHCHECKS", ""), enabled=environ.get("DP_ENABLE_HEALTHCHECKS", "")
        ),
        **groups["options"],
    )


def usage() -> str:
    """The text of `--help`."""
    lines = flags_.build_usage("gpushare agent", _FLAGS)
    lines += ["", "variables without a flag: DP_DISABLE_HEALTHCHECKS, DP_ENABLE_HEALTHCHECKS (XID numbers, or all)", ""]
    return "\n".join(lines)


def _channels(texts: Sequence[str]) -> tuple[int, ...]:
    found = words(texts)
    if found not in {(), ("0",)}:
        raise ValueError(f"{','.join(found)!r} is neither empty nor 0, the only channel that there is")
    return tuple(map(int, found))


def _port(texts: Sequence[str]) -> int:
    if not (texts[-1].isascii() and texts[-1].isdecimal() and int(texts[-1]) < 2**16):
        raise ValueError(f"{texts[-1]!r} is no port number")
    return int(texts[-1])


_FLAGS = (
    flag("mig-strategy", "MIG_STRATEGY", group="flags", read=choice(MigStrategy)),
    flag("fail-on-init-error", "FAIL_ON_INIT_ERROR", group="flags", read=switch),
    flag("driver-root", "NVIDIA_DRIVER_ROOT", alias="nvidia-driver-root", group="flags", key="nvidia_driver_root"),
    flag("dev-root", "NVIDIA_DEV_ROOT", alias="nvidia-dev-root", group="flags", key="nvidia_dev_root"),
    flag("pass-device-specs", "PASS_DEVICE_SPECS", group="plugin", read=switch),
    flag("device-list-strategy", "DEVICE_LIST_STRATEGY", group="plugin", read=choices(ListStrategy)),
    flag("device-id-strategy", "DEVICE_ID_STRATEGY", group="plugin", read=choice(IdStrategy)),
    flag("gdrcopy-enabled", "GDRCOPY_ENABLED", group="flags", read=switch),
    flag("gds-enabled", "GDS_ENABLED", group="flags", read=switch),
    flag("mofed-enabled", "MOFED_ENABLED", group="flags", read=switch),
    flag("cdi-annotation-prefix", "CDI_ANNOTATION_PREFIX", group="plugin"),
    flag(
        "nvidia-cdi-hook-path",
        "NVIDIA_CDI_HOOK_PATH",
        "NVIDIA_CTK_PATH",
        alias="nvidia-ctk-path",
        group="plugin",
        key="nvidia_ctk_path",
    ),
    flag(
        "driver-root-ctr-path",
        "DRIVER_ROOT_CTR_PATH",
        "CONTAINER_DRIVER_ROOT",
        alias="container-driver-root",
        group="plugin",
        key="container_driver_root",
    ),
    flag("mps-root", "MPS_ROOT", group="flags"),
    flag(
        "shared-devices-allocation-policy",
        "SHARED_DEVICES_ALLOCATION_POLICY",
        group="plugin",
        read=choice(Allocation),
    ),
    flag("device-discovery-strategy", "DEVICE_DISCOVERY_STRATEGY", group="flags", read=discovery),
    flag("imex-channel-ids", "IMEX_CHANNEL_IDS", read=_channels),
    flag("imex-required", "IMEX_REQUIRED", read=switch),
    flag("kubelet-socket", "KUBELET_SOCKET"),
    flag("config-file", "CONFIG_FILE"),
    flag("cdi-feature-flags", "CDI_FEATURE_FLAGS", read=words),
    flag("cdi-disable-hooks", "CDI_DISABLE_HOOKS", read=words),
    # Ours.
    flag("node-name", names.ENV_NODE_NAME),
    flag("kubeconfig", "KUBECONFIG"),
    flag("metrics-port", names.ENV_METRICS_PORT, read=_port),
    flag("metrics-address", names.ENV_POD_IP),
)
