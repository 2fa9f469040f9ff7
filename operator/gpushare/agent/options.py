"""The agent's command line and environment, with the flags, variables and precedence of NVIDIA's device plugin.

Pure: argv and environ in, a value out. No library does what that plugin does: a variable that is present but empty
overrides the configuration file, and a flag that nobody set leaves the matter to the file.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, TypeVar

from gpushare import names
from gpushare.api.sharing import Flags, IdStrategy, ListStrategy, PluginFlags
from gpushare.domain.devices import MigStrategy
from gpushare.domain.pools import Allocation
from gpushare.errors import UsageError

KUBELET_SOCKET = "/var/lib/kubelet/device-plugins/kubelet.sock"
E = TypeVar("E", bound=StrEnum)


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
    found = dict(_read_environ(environ))
    found.update(_read_argv(argv))
    groups: dict[str, dict[str, Any]] = {"options": {}, "flags": {}, "plugin": {}}
    for flag, value in found.items():
        groups[flag.group][flag.key] = value
    return AgentOptions(
        flags=Flags(**groups["flags"], plugin=PluginFlags(**groups["plugin"])),
        health_checks=HealthChecks(
            disabled=environ.get("DP_DISABLE_HEALTHCHECKS", ""), enabled=environ.get("DP_ENABLE_HEALTHCHECKS", "")
        ),
        **groups["options"],
    )


def usage() -> str:
    """The text of `--help`."""
    lines = ["usage: gpushare agent [flags]", "", "flags, each with the variable that says the same:"]
    for flag in _FLAGS:
        spelled = ", ".join(f"--{name}" for name in flag.names)
        lines.append(f"  {spelled + flag.metavar:<58} {', '.join(flag.variables)}")
    lines += ["", "variables without a flag: DP_DISABLE_HEALTHCHECKS, DP_ENABLE_HEALTHCHECKS (XID numbers, or all)", ""]
    return "\n".join(lines)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Flag:
    names: tuple[str, ...]
    variables: tuple[str, ...]
    """The first that is present counts."""
    read: Callable[[Sequence[str]], Any]
    """All texts given, more than one only for a repeated flag. Raises ValueError with what is expected."""
    group: str = "options"
    key: str = ""
    """Name of the field in its group."""
    is_switch: bool = False
    """May stand without a value, and takes one only after `=`."""

    @property
    def metavar(self) -> str:
        return "" if self.is_switch else " VALUE"


def _read_environ(environ: Mapping[str, str]) -> Iterable[tuple[_Flag, Any]]:
    for flag in _FLAGS:
        variable = next((name for name in flag.variables if name in environ), None)
        if variable is not None:
            yield flag, _read(flag, variable, [environ[variable]])


def _read_argv(argv: Sequence[str]) -> Iterable[tuple[_Flag, Any]]:
    texts: dict[_Flag, list[str]] = {}
    rest = list(argv)
    while rest:
        word = rest.pop(0)
        name, has_value, value = word.lstrip("-").partition("=")
        flag = _BY_NAME.get(name) if word.startswith("-") else None
        if flag is None:
            raise UsageError(f"unknown {'flag' if word.startswith('-') else 'argument'} {word!r}; see --help")
        if not has_value:
            if not flag.is_switch and not rest:
                raise UsageError(f"--{name}: a value is missing")
            value = "true" if flag.is_switch else rest.pop(0)
        texts.setdefault(flag, []).append(value)
    for flag, values in texts.items():
        yield flag, _read(flag, f"--{flag.names[0]}", values)


def _read(flag: _Flag, source: str, texts: Sequence[str]) -> Any:
    try:
        return flag.read(texts)
    except ValueError as error:
        raise UsageError(f"{source}: {error}") from error


def _text(texts: Sequence[str]) -> str:
    return texts[-1]


def _switch(texts: Sequence[str]) -> bool:
    text = texts[-1]
    # The spellings of Go's ParseBool; an empty variable is false, as in NVIDIA's plugin.
    if text in {"1", "t", "T", "true", "TRUE", "True"}:
        return True
    if text in {"", "0", "f", "F", "false", "FALSE", "False"}:
        return False
    raise ValueError(f"{text!r} is neither true nor false")


def _words(texts: Sequence[str]) -> tuple[str, ...]:
    return tuple(word.strip() for text in texts for word in text.split(",") if word.strip())


def _choice(kind: type[E]) -> Callable[[Sequence[str]], E]:
    return lambda texts: _one_of(kind, texts[-1])


def _choices(kind: type[E]) -> Callable[[Sequence[str]], tuple[E, ...]]:
    # An empty list is no way of telling a container what it has.
    return lambda texts: tuple(_one_of(kind, word) for word in _words(texts) or ("",))


def _one_of(kind: type[E], text: str) -> E:
    try:
        return kind(text)
    except ValueError:
        raise ValueError(f"{text!r} is none of {', '.join(kind)}") from None


def _discovery(texts: Sequence[str]) -> str:
    if texts[-1] not in {"auto", "nvml"}:
        raise ValueError(f"{texts[-1]!r} is none of auto, nvml")
    return texts[-1]


def _channels(texts: Sequence[str]) -> tuple[int, ...]:
    words = _words(texts)
    if words not in {(), ("0",)}:
        raise ValueError(f"{','.join(words)!r} is neither empty nor 0, the only channel that there is")
    return tuple(map(int, words))


def _port(texts: Sequence[str]) -> int:
    if not (texts[-1].isascii() and texts[-1].isdecimal() and int(texts[-1]) < 2**16):
        raise ValueError(f"{texts[-1]!r} is no port number")
    return int(texts[-1])


def _flag(name: str, *variables: str, alias: str = "", **keywords: Any) -> _Flag:
    spellings = (name, alias) if alias else (name,)
    keywords.setdefault("key", name.replace("-", "_"))
    keywords.setdefault("read", _text)
    return _Flag(names=spellings, variables=variables, is_switch=keywords["read"] is _switch, **keywords)


_FLAGS = (
    _flag("mig-strategy", "MIG_STRATEGY", group="flags", read=_choice(MigStrategy)),
    _flag("fail-on-init-error", "FAIL_ON_INIT_ERROR", group="flags", read=_switch),
    _flag("driver-root", "NVIDIA_DRIVER_ROOT", alias="nvidia-driver-root", group="flags", key="nvidia_driver_root"),
    _flag("dev-root", "NVIDIA_DEV_ROOT", alias="nvidia-dev-root", group="flags", key="nvidia_dev_root"),
    _flag("pass-device-specs", "PASS_DEVICE_SPECS", group="plugin", read=_switch),
    _flag("device-list-strategy", "DEVICE_LIST_STRATEGY", group="plugin", read=_choices(ListStrategy)),
    _flag("device-id-strategy", "DEVICE_ID_STRATEGY", group="plugin", read=_choice(IdStrategy)),
    _flag("gdrcopy-enabled", "GDRCOPY_ENABLED", group="flags", read=_switch),
    _flag("gds-enabled", "GDS_ENABLED", group="flags", read=_switch),
    _flag("mofed-enabled", "MOFED_ENABLED", group="flags", read=_switch),
    _flag("cdi-annotation-prefix", "CDI_ANNOTATION_PREFIX", group="plugin"),
    _flag(
        "nvidia-cdi-hook-path",
        "NVIDIA_CDI_HOOK_PATH",
        "NVIDIA_CTK_PATH",
        alias="nvidia-ctk-path",
        group="plugin",
        key="nvidia_ctk_path",
    ),
    _flag(
        "driver-root-ctr-path",
        "DRIVER_ROOT_CTR_PATH",
        "CONTAINER_DRIVER_ROOT",
        alias="container-driver-root",
        group="plugin",
        key="container_driver_root",
    ),
    _flag("mps-root", "MPS_ROOT", group="flags"),
    _flag(
        "shared-devices-allocation-policy",
        "SHARED_DEVICES_ALLOCATION_POLICY",
        group="plugin",
        read=_choice(Allocation),
    ),
    _flag("device-discovery-strategy", "DEVICE_DISCOVERY_STRATEGY", group="flags", read=_discovery),
    _flag("imex-channel-ids", "IMEX_CHANNEL_IDS", read=_channels),
    _flag("imex-required", "IMEX_REQUIRED", read=_switch),
    _flag("kubelet-socket", "KUBELET_SOCKET"),
    _flag("config-file", "CONFIG_FILE"),
    _flag("cdi-feature-flags", "CDI_FEATURE_FLAGS", read=_words),
    _flag("cdi-disable-hooks", "CDI_DISABLE_HOOKS", read=_words),
    # Ours.
    _flag("node-name", names.ENV_NODE_NAME),
    _flag("kubeconfig", "KUBECONFIG"),
    _flag("metrics-port", names.ENV_METRICS_PORT, read=_port),
    _flag("metrics-address", names.ENV_POD_IP),
)
_BY_NAME = {name: flag for flag in _FLAGS for name in flag.names}
