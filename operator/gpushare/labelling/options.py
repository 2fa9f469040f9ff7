"""The command line and environment of `gpushare labels`: flags, variables and precedence of GPU feature discovery."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Final, TypeVar

from gpushare import names
from gpushare.api import flags as flags_
from gpushare.api.durations import read_duration
from gpushare.api.flags import choice, discovery, flag, switch
from gpushare.api.sharing import DiscoveryFlags, Flags, PluginFlags
from gpushare.domain.devices import MigStrategy

F = TypeVar("F", Flags, DiscoveryFlags)

OUTPUT_FILE: Final = "/etc/kubernetes/node-feature-discovery/features.d/gfd"
MACHINE_TYPE_FILE: Final = "/sys/class/dmi/id/product_name"
SLEEP_SECONDS: Final = 60.0


@dataclass(frozen=True, slots=True, kw_only=True)
class LabelOptions:
    """What was said on the command line or in the environment."""

    flags: Flags = Flags()  # noqa: RUF009 - frozen
    """None in a field: not said, so that the configuration decides."""
    config_file: str = ""
    kubeconfig: str = ""
    namespace: str = "default"
    """Where NodeFeature objects are written."""
    node_name: str = ""
    pod_name: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class LabelSettings:
    """Options and configuration with everything decided."""

    mig_strategy: MigStrategy
    fails_without_driver: bool
    oneshot: bool
    has_timestamp: bool
    sleep_seconds: float
    """Between two readings; infinity: until somebody asks for one."""
    output_file: str
    """Empty: standard output."""
    machine_type_file: str
    """Empty: the machine is not known."""
    uses_node_feature: bool
    """Labels go to a NodeFeature object rather than to a file."""


def parse(argv: Sequence[str], environ: Mapping[str, str]) -> LabelOptions:
    """Reads arguments (without the program's name) and environment.

    Raises:
        UsageError: an unknown flag, or a value that cannot be.
    """
    groups = flags_.parse(_FLAGS, argv, environ)
    own = Flags(**groups["flags"], gfd=DiscoveryFlags(**groups["gfd"]), plugin=PluginFlags(**groups["plugin"]))
    return LabelOptions(flags=own, **groups["options"])


def usage() -> str:
    """The text of `--help`."""
    first, *rest = flags_.build_usage("gpushare labels", _FLAGS)
    about = "Labels this node by its GPUs, and by how they are shared: once, or for as long as it runs."
    return "\n".join([first, "", about, *rest, ""])


def settle(options: LabelOptions, text: Flags) -> LabelSettings:
    """What was said beats what the configuration says, which beats the defaults."""
    flags, gfd = _over(options.flags, text), _over(options.flags.gfd, text.gfd)
    return LabelSettings(
        mig_strategy=flags.mig_strategy or MigStrategy.NONE,
        fails_without_driver=flags.fail_on_init_error is not False,
        oneshot=gfd.oneshot is True,
        has_timestamp=gfd.no_timestamp is not True,
        sleep_seconds=SLEEP_SECONDS if gfd.sleep_interval is None else gfd.sleep_interval,
        output_file=OUTPUT_FILE if gfd.output_file is None else gfd.output_file,
        machine_type_file=MACHINE_TYPE_FILE if gfd.machine_type_file is None else gfd.machine_type_file,
        uses_node_feature=flags.use_node_feature_api is not False,
    )


def _over(said: F, text: F) -> F:
    """Field by field what was said, else what the text says."""
    values = {field.name: getattr(said, field.name) for field in fields(said)}
    return replace(text, **{name: value for name, value in values.items() if value is not None})


def _duration(texts: Sequence[str]) -> float:
    return read_duration(texts[-1])


def _rate(texts: Sequence[str]) -> float:
    try:
        return float(texts[-1])
    except ValueError:
        raise ValueError(f"{texts[-1]!r} is no number") from None


_FLAGS = (
    flag("oneshot", "GFD_ONESHOT", group="gfd", read=switch, help="label once and end; default false"),
    flag(
        "sleep-interval",
        "GFD_SLEEP_INTERVAL",
        group="gfd",
        read=_duration,
        help="between two readings: 60s, 1h5m, or infinite, which waits for SIGHUP or another configuration; default 60s",
    ),
    flag(
        "use-node-feature-api",
        "GFD_USE_NODE_FEATURE_API",
        "USE_NODE_FEATURE_API",
        group="flags",
        read=switch,
        help="label by a NodeFeature object, which needs a cluster; false: by a file; default true",
    ),
    flag(
        "output-file",
        "GFD_OUTPUT_FILE",
        alias="output o",
        group="gfd",
        help=f"the file; empty: standard output; default {OUTPUT_FILE}",
    ),
    flag(
        "config-file",
        "GFD_CONFIG_FILE",
        "CONFIG_FILE",
        help="the sharing configuration that the node's agent has, followed when it changes; default: none, nothing is shared",
    ),
    flag(
        "mig-strategy",
        "GFD_MIG_STRATEGY",
        "MIG_STRATEGY",
        group="flags",
        read=choice(MigStrategy),
        help="how MIG devices are offered: none, single or mixed; default: as the configuration says, else none",
    ),
    flag(
        "fail-on-init-error",
        "GFD_FAIL_ON_INIT_ERROR",
        "FAIL_ON_INIT_ERROR",
        group="flags",
        read=switch,
        help="whether it is a failure that the driver does not answer; false: such a node has no GPUs; default true",
    ),
    flag("no-timestamp", "GFD_NO_TIMESTAMP", group="gfd", read=switch, help="no label with the time; default false"),
    flag(
        "machine-type-file",
        "GFD_MACHINE_TYPE_FILE",
        group="gfd",
        help=f"where the machine's name is read; default {MACHINE_TYPE_FILE}",
    ),
    flag(
        "device-discovery-strategy",
        "DEVICE_DISCOVERY_STRATEGY",
        group="flags",
        read=discovery,
        help="how devices are found: auto or nvml, which mean the same here; default auto",
    ),
    flag(
        "driver-root-ctr-path",
        "DRIVER_ROOT_CTR_PATH",
        "CONTAINER_DRIVER_ROOT",
        alias="container-driver-root",
        group="plugin",
        key="container_driver_root",
        help="where this container sees the driver's root; default /driver-root",
    ),
    flag("node-name", names.ENV_NODE_NAME, help="the node that a NodeFeature object is about"),
    flag("namespace", "NAMESPACE", help="where NodeFeature objects are; default default"),
    flag("pod-name", names.ENV_POD_NAME, help="the pod of this process, with whose DaemonSet the object goes"),
    flag("kubeconfig", "KUBECONFIG", help="how to reach the cluster; default: as a pod does"),
    flag(
        "kube-api-qps",
        "KUBE_API_QPS",
        group="paces",
        read=_rate,
        help="taken for the sake of NVIDIA's feature discovery; a reading makes two or three requests",
    ),
    flag("kube-api-burst", "KUBE_API_BURST", group="paces", read=_rate, help="the same"),
)
