"""Who holds what of which GPU, in the table that people know from Alibaba's `kubectl inspect cgpu`, to the letter.

Called by `gpushare inspect`. Nodes stand by name, where that tool has them in any order, and the header names the unit in which
they count, which that tool guesses. Nodes that count in other units, as those in the dialect of HAMi do, have a table of their
own.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from operator import attrgetter
from typing import Any, Final

from gpushare.domain.fractions import FractionMode
from gpushare.views.tables import build_blocks

_SUMMARY_RULE, _DETAILS_RULE = 20, 10
"""By how much the ruled line is longer than the unaligned rows that it follows."""
_GIB: Final = 1024
_IN_CLUSTER: Final = "Allocated/Total GPU Memory In Cluster:"


@dataclass(frozen=True, slots=True, kw_only=True)
class InspectedPod:
    """What one pod holds."""

    namespace: str
    name: str
    gpus: Mapping[int, int]
    """Units by index of the GPU."""
    pending: int = 0
    """Units that it asks for, where nobody knows yet on which GPU."""

    def to_json(self) -> dict[str, Any]:
        """For programs."""
        held = {str(index): units for index, units in sorted(self.gpus.items())}
        return {"namespace": self.namespace, "name": self.name, "gpus": held, "pending": self.pending}


@dataclass(frozen=True, slots=True, kw_only=True)
class InspectedNode:
    """One node that serves fractions."""

    name: str
    address: str
    mode: FractionMode
    unit_mib: int
    totals: Mapping[int, int] = field(default_factory=dict)
    """Units of each GPU, by its index."""
    pods: tuple[InspectedPod, ...] = ()

    @property
    def total(self) -> int:
        """Units of all GPUs."""
        return sum(self.totals.values())

    @property
    def used(self) -> int:
        """Units of all pods, those included of which nobody knows yet where."""
        return sum(sum(pod.gpus.values()) + pod.pending for pod in self.pods)

    @property
    def pending(self) -> int:
        """Units of pods of which nobody knows yet on which GPU."""
        return sum(pod.pending for pod in self.pods)

    def used_of(self, index: int) -> int:
        """Units that are taken of one GPU."""
        return sum(pod.gpus.get(index, 0) for pod in self.pods)

    def to_json(self) -> dict[str, Any]:
        """For programs."""
        return {
            "name": self.name,
            "address": self.address,
            "dialect": self.mode.dialect.value,
            "isolation": self.mode.isolation.value,
            "placement": self.mode.placement.value,
            "unitMiB": self.unit_mib,
            "total": self.total,
            "used": self.used,
            "pending": self.pending,
            "gpus": [
                {"index": index, "total": total, "used": self.used_of(index)}
                for index, total in sorted(self.totals.items())
            ],
            "pods": [pod.to_json() for pod in self.pods],
        }


def build_document(nodes: Iterable[InspectedNode]) -> Mapping[str, Any]:
    """The same for programs, all nodes in one list."""
    return {"nodes": [node.to_json() for node in nodes]}


def build_summary(nodes: Iterable[InspectedNode]) -> str:
    """A row a node, a column a GPU."""
    return "\n\n".join(map(_summarize, _by_unit(nodes)))


def build_details(nodes: Iterable[InspectedNode]) -> str:
    """A table a node, with a row a pod."""
    return "\n\n".join(map(_detail, _by_unit(nodes)))


def _by_unit(nodes: Iterable[InspectedNode]) -> list[list[InspectedNode]]:
    unit = attrgetter("unit_mib")
    ordered = sorted(nodes, key=lambda node: (-node.unit_mib, node.name))
    return [list(group) for _, group in groupby(ordered, key=unit)]


def _summarize(nodes: Sequence[InspectedNode]) -> str:
    gpus = range(max((max(node.totals, default=-1) for node in nodes), default=-1) + 1)
    has_pending = any(node.pending for node in nodes)
    header = ["NAME", "IPADDRESS", *(f"GPU{index}(Allocated/Total)" for index in gpus)]
    header += [*(["PENDING(Allocated)"] if has_pending else []), f"GPU Memory({_unit_of(nodes)})"]
    rows = [
        [
            node.name,
            node.address,
            *(f"{node.used_of(index)}/{node.totals.get(index, 0)}" for index in gpus),
            *([str(node.pending)] if has_pending else []),
            f"{node.used}/{node.total}",
        ]
        for node in nodes
    ]
    rule = "-" * (_length_of(rows[:1]) + _SUMMARY_RULE)
    return build_blocks([header, *rows, [rule], [_IN_CLUSTER], [_share_of(nodes), ""]])


def _detail(nodes: Sequence[InspectedNode]) -> str:
    lines: list[Sequence[str]] = []
    rule = ""
    for node in nodes:
        rows = list(_rows_of(node))
        rule = rule or "-" * (_length_of(rows) + _DETAILS_RULE)
        pending = ["Pending(Allocated)"] if node.pending else []
        percent = _percent(node.used, node.total)
        lines += [
            [""], ["NAME:", node.name], ["IPADDRESS:", node.address], [""],
            ["NAME", "NAMESPACE", *(f"GPU{index}(Allocated)" for index in _indexes(node)), *pending, ""],
            *rows,
            ["Allocated :", f"{node.used} ({percent}%)", ""], ["Total :", f"{node.total} ", ""], [rule],
        ]  # fmt: skip
    return build_blocks([*lines, [""], [""], [_IN_CLUSTER, _share_of(nodes), ""]])


def _rows_of(node: InspectedNode) -> Iterator[list[str]]:
    """In the order of the GPUs, then by name, as that tool walks through them."""
    for pod in sorted(node.pods, key=lambda pod: (min(pod.gpus, default=len(node.totals)), pod.name, pod.namespace)):
        held = (str(pod.gpus.get(index, 0)) for index in _indexes(node))
        yield [pod.name, pod.namespace, *held, *([str(pod.pending)] if node.pending else []), ""]


def _indexes(node: InspectedNode) -> range:
    return range(max(node.totals, default=-1) + 1)


def _length_of(rows: Iterable[Sequence[str]]) -> int:
    """Bytes of rows before they are aligned: a character between two cells, and one at the end."""
    return sum(len("\t".join(row).encode()) + 1 for row in rows)


def _unit_of(nodes: Sequence[InspectedNode]) -> str:
    """As the nodes count; Alibaba's tool takes it for GiB where no GPU has more than 100 of them."""
    unit = nodes[0].unit_mib
    return "GiB" if unit == _GIB else "MiB" if unit == 1 else f"{unit}MiB"


def _share_of(nodes: Sequence[InspectedNode]) -> str:
    used, total = sum(node.used for node in nodes), sum(node.total for node in nodes)
    return f"{used}/{total} ({_percent(used, total)}%)"


def _percent(used: int, total: int) -> int:
    return used * 100 // total if total else 0
