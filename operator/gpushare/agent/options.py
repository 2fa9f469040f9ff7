"""The agent's command line and environment, with the flags, variables and precedence of NVIDIA's device plugin.

Pure: argv and environ in, a value out.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from gpushare.api import agent_flags, flags
from gpushare.api.sharing import Flags, PluginFlags

_ABOUT = (
    "",
    "Offers the GPUs of this node to its kubelet, whole or in shares, and tells how they are. Runs as a DaemonSet of the",
    "operator's. Without a cluster it needs no flag at all, and --config-file to share GPUs.",
)
_HEALTH = (
    "",
    "variables without a flag, with XIDs and commas between:",
    "  DP_DISABLE_HEALTHCHECKS",
    "      errors that do not make a GPU unhealthy, besides those of applications (13, 31, 43, 45, 68, 109);",
    "      xids: none does; all: not even a GPU that cannot be read is unhealthy",
    "  DP_ENABLE_HEALTHCHECKS",
    "      errors that do all the same; all: every one",
    "",
)
KUBELET_SOCKET = "/var/lib/kubelet/device-plugins/kubelet.sock"
HAMI_CORE_LIBRARY = "/usr/local/vgpu/libvgpu.so"


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
    hami_core_library: str = HAMI_CORE_LIBRARY
    """Path on the host where an administrator puts HAMi's library."""
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
    groups = flags.parse(agent_flags.FLAGS, argv, environ)
    return AgentOptions(
        flags=Flags(**groups["flags"], plugin=PluginFlags(**groups["plugin"])),
        health_checks=HealthChecks(
            disabled=environ.get("DP_DISABLE_HEALTHCHECKS", ""), enabled=environ.get("DP_ENABLE_HEALTHCHECKS", "")
        ),
        **groups["options"],
    )


def usage() -> str:
    """The text of `--help`."""
    lines = flags.build_usage("gpushare agent", agent_flags.FLAGS)
    return "\n".join([lines[0], *_ABOUT, *lines[1:], *_HEALTH])
