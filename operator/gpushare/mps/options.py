"""The command line and environment of `gpushare mps`: the flags of NVIDIA's MPS control daemon, and a few of our own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from gpushare import names
from gpushare.api import flags
from gpushare.domain.devices import MigStrategy

MOUNT_SHM = "mount-shm"
FLAGS = (
    flags.flag(
        "config-file",
        "CONFIG_FILE",
        help="the sharing configuration, followed when it changes; default: what the agent of this node has put in force",
    ),
    flags.flag(
        "mig-strategy",
        "MIG_STRATEGY",
        read=flags.choice(MigStrategy),
        help="how MIG devices are offered: none, single or mixed; default: as policy or configuration say, else none",
    ),
    # Ours.
    flags.flag(
        "driver-root-ctr-path",
        "DRIVER_ROOT_CTR_PATH",
        "CONTAINER_DRIVER_ROOT",
        alias="container-driver-root",
        key="driver_root",
        help="where this container sees the driver's root; default /driver-root",
    ),
    flags.flag("node-name", names.ENV_NODE_NAME, help="the node in the cluster; needed where there is one"),
    flags.flag("kubeconfig", "KUBECONFIG", help="for trying by hand; default: the pod's own account, or no cluster"),
    flags.flag(
        "metrics-port", names.ENV_METRICS_PORT, read=flags.port, help="of metrics and health; 0: none; default 0"
    ),
    flags.flag("metrics-address", names.ENV_POD_IP, help="address to listen on; default: all of them"),
)

_ABOUT = (
    "",
    "Runs an MPS control daemon for each resource of this node that is shared by MPS. Runs as a DaemonSet of the operator's,",
    "where a configuration in use needs it.",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class MpsOptions:
    """What was said on the command line or in the environment."""

    mounts_only: bool = False
    """The subcommand `mount-shm`: make the shared memory, and end."""
    config_file: str = ""
    """Empty: the configuration comes from the GPUNode."""
    mig_strategy: MigStrategy | None = None
    """None: the policy or the text decides."""
    driver_root: str = "/driver-root"
    """Where this container has the host's driver."""
    node_name: str = ""
    kubeconfig: str = ""
    metrics_port: int = 0
    """0: no listener."""
    metrics_address: str = ""
    """Empty: every address of the machine."""


def parse(argv: Sequence[str], environ: Mapping[str, str]) -> MpsOptions:
    """Reads arguments (without the program's name) and environment.

    Raises:
        UsageError: an unknown flag, or a value that cannot be.
    """
    mounts_only = bool(argv) and argv[0] == MOUNT_SHM
    said = flags.parse(FLAGS, argv[1:] if mounts_only else argv, environ)["options"]
    return MpsOptions(mounts_only=mounts_only, **said)


def usage() -> str:
    """The text of `--help`."""
    lines = flags.build_usage("gpushare mps", FLAGS)
    shm = f"gpushare mps {MOUNT_SHM}: mounts the shared memory of MPS at /mps/shm, and ends"
    return "\n".join([lines[0], *_ABOUT, *lines[1:], "", shm, ""])
