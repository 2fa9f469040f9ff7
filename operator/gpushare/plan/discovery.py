"""Whether a node has NVIDIA GPUs, and how long that is believed after the labels that said so have gone. Called by `fleet`.

Node feature discovery takes its labels away while it restarts, and a node must not lose its agent for that. The beginning of
such a time stands as a condition in the GPUNode, which is ours: it outlives the controller, and nothing is written on the Node.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import Final

from gpushare import names
from gpushare.domain.conditions import Condition
from gpushare.domain.gpunode import DISCOVERED, GPUNode
from gpushare.plan.snapshot import Node

# Vendor 10de is NVIDIA: alone, or after the class of a display (0300) or 3D controller (0302); other numbers may follow.
_FEATURE: Final = re.compile(re.escape(names.PREFIX_NFD) + r"pci-(?:030[02]_)?10de(?:_[0-9a-f]{4})*\.present")
_PERSON: Final = "kubectl"
"""With what the field managers of a person's writes begin."""
_TIME: Final = "%Y-%m-%dT%H:%M:%SZ"


@lru_cache(maxsize=4096)
def is_feature(key: str) -> bool:
    """Whether a label of this name tells of an NVIDIA GPU, in one of the forms that node feature discovery may be set to."""
    return _FEATURE.fullmatch(key) is not None


def has_gpus(node: Node) -> bool:
    """Whether its labels say so: those of discovery, or somebody else than us wrote `gpu.present=true`."""
    return is_discovered(node) or foreign_presence(node) == "true"


def is_discovered(node: Node) -> bool:
    """Whether node feature discovery tells of an NVIDIA GPU."""
    return any(value == "true" for key, value in node.labels.items() if is_feature(key))


def foreign_presence(node: Node) -> str:
    """`gpu.present` as somebody else wrote it; empty where nobody did."""
    # What we wrote ourselves is no input: it would keep a node with GPUs for ever.
    return "" if names.LABEL_PRESENT in node.owned else node.labels.get(names.LABEL_PRESENT, "")


@dataclass(frozen=True, slots=True, kw_only=True)
class Sight:
    """What is made of a node's labels at one moment."""

    present: bool
    """It counts as a node with GPUs."""
    missing: bool = False
    """But its labels do not say so any more."""
    returned: bool = False
    """They did not say so before, and do now."""
    condition: Condition | None = None
    """`Discovered`, without its times, while labels are missing; None: there is nothing to say."""
    remaining_seconds: float = 0.0
    """How long a node whose labels are missing still counts."""


def look(node: Node, stored: GPUNode | None, now: str, grace_seconds: float) -> Sight:
    """Judges one node.

    Args:
        node: with its labels.
        stored: its GPUNode, with the beginning of a time without labels; None: nothing runs there that could be spared.
        now: RFC 3339.
        grace_seconds: how long labels may be missing.
    """
    lost = _lost_since(stored)
    if has_gpus(node):
        return Sight(present=True, returned=lost is not None or node.labels.get(names.LABEL_PRESENT) == "false")
    if stored is None or stored.node_uid != node.uid or _is_meant(node):
        return Sight(present=False)
    ends = _parsed(lost or now) + timedelta(seconds=grace_seconds)
    remaining = (ends - _parsed(now)).total_seconds()
    if remaining <= 0:
        return Sight(present=False)
    message = (
        f"no label of node feature discovery tells of an NVIDIA GPU on {node.name} any more ({names.LABELS_NFD_GPU[0]} and the "
        f"like); agent, configuration and labels stay until {ends.strftime(_TIME)}, in case it comes back"
    )
    condition = Condition(type=DISCOVERED, status="False", reason="LabelsMissing", message=message)
    return Sight(present=True, missing=True, condition=condition, remaining_seconds=remaining)


def _is_meant(node: Node) -> bool:
    """Whether a person took the node out: their own `gpu.present` is gone or false, which is no slip of a discovery."""
    if names.LABEL_PRESENT in node.owned:
        return False
    presence = node.labels.get(names.LABEL_PRESENT)
    # NVIDIA's operator says false as soon as discovery says nothing.
    return presence != "false" or node.writers.get(names.LABEL_PRESENT, "").startswith(_PERSON)


def _lost_since(stored: GPUNode | None) -> str | None:
    conditions = stored.status.conditions if stored is not None else ()
    return next((each.last_transition_time for each in conditions if each.type == DISCOVERED), None)


def _parsed(time: str) -> datetime:
    return datetime.strptime(time, _TIME).replace(tzinfo=UTC)
