"""Configurations that nodes get by the labels of other GPU sharing systems. Called by `assignments`.

`ack.node.gpu.schedule` and `ack.node.gpu.placement` are those of Alibaba's container service, `gpu=on` is that of HAMi; what
they mean there is put into the words of a sharing configuration.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import lru_cache
from typing import Any, Final

from gpushare import names
from gpushare.domain.fractions import Placement
from gpushare.domain.gpunode import Config, ConfigReason
from gpushare.plan.catalogs import Entry, Refusal
from gpushare.plan.snapshot import Node, Settings

UNKNOWN_MODE: Final = "UnknownMode"
HAMI_ON: Final = "on"

_DEFAULT, _TOPOLOGY, _MIG, _SHARE, _MPS = "default", "topology", "mig", "share", "mps"
_ISOLATED: Final = {"cgpu": "false", "core_mem": "true"}
"""Modes that isolate memory, each with whether it gives out compute too."""
MODES: Final = (_DEFAULT, *_ISOLATED, _SHARE, _MPS, _TOPOLOGY, _MIG)
_UNSHARED: Final = "version: v1\n"
_INSTANCES: Final = "version: v1\ngpushare:\n  fractions: aliyun\n  isolation: mig\n"


def find_entry(node: Node, settings: Settings, mig_strategy: str) -> Entry | None:
    """What the labels of a node ask for; None: they ask for nothing."""
    if mode := node.labels.get(names.LABEL_ACK_SCHEDULE, ""):
        placement = node.labels.get(names.LABEL_ACK_PLACEMENT, "") or Placement.BINPACK.value
        wants_none = node.labels.get(names.LABEL_DISABLE_ISOLATION) == "true"
        return _ack(mode, placement, "none" if wants_none else settings.isolation, mig_strategy)
    if settings.hami_nodes and node.labels.get(names.LABEL_HAMI_NODE) == HAMI_ON:
        text = build_hami({"isolation": settings.isolation, **settings.hami_keys})
        name = f"{names.LABEL_HAMI_NODE}={HAMI_ON}"
        return Entry(config=Config(reason=ConfigReason.HAMI, title=name, content=text, mig_strategy=mig_strategy))
    return None


def build_hami(keys: Mapping[str, Any]) -> str:
    """The configuration of a node in the words of HAMi, with these keys of its `gpushare` block."""
    lines = (f"  {key}: {value if isinstance(value, str) else json.dumps(value)}\n" for key, value in keys.items())
    return f"version: v1\ngpushare:\n  fractions: hami\n{''.join(lines)}"


@lru_cache(maxsize=64)
def _ack(mode: str, placement: str, isolation: str, mig_strategy: str) -> Entry:
    config = Config(reason=ConfigReason.ACK, title=f"{names.LABEL_ACK_SCHEDULE}={mode}", mig_strategy=mig_strategy)
    for label, value, known in (
        (names.LABEL_ACK_SCHEDULE, mode, MODES),
        (names.LABEL_ACK_PLACEMENT, placement, tuple(Placement)),
    ):
        if value not in known:
            text = f'the label {label} says "{value}", which is not known; write one of {", ".join(known)}'
            return Entry(config=config, refusal=Refusal(reason=UNKNOWN_MODE, text=text))
    content, warnings = _text_of(mode, placement, isolation)
    return Entry(
        config=Config(reason=config.reason, title=config.title, mig_strategy=mig_strategy, content=content),
        warnings=warnings,
    )


def _text_of(mode: str, placement: str, isolation: str) -> tuple[str, tuple[str, ...]]:
    """The configuration that a known mode stands for, and what is to be said about it."""
    if mode == _DEFAULT:
        return _UNSHARED, ()
    if mode == _MIG:
        return _INSTANCES, ()
    if mode == _TOPOLOGY:
        text = f"{names.LABEL_ACK_SCHEDULE}=topology: GPUs are given out as {names.RESOURCE_GPU}, those near each other first"
        return _UNSHARED, (f"{text}; aliyun.com/gpu is not offered",)
    warnings: tuple[str, ...] = ()
    if mode in _ISOLATED and isolation == "none":
        text = "asks for isolated memory, and nothing isolates it here: parts of GPUs are only counted"
        warnings = (f"{names.LABEL_ACK_SCHEDULE}={mode} {text}; the chart's fractions.isolation says by what",)
    tier = isolation if mode in _ISOLATED else mode.replace(_SHARE, "none")
    compute = _ISOLATED.get(mode, "true" if mode == _MPS else "false")
    lines = (f"placement: {placement}", f"isolation: {tier}", f"compute: {compute}")
    return "version: v1\ngpushare:\n  fractions: aliyun\n" + "".join(f"  {line}\n" for line in lines), warnings
