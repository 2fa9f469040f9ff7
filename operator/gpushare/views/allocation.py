"""Which GPUs a request gets and why, as text and as data."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

from gpushare.allocation.explaining import Explanation
from gpushare.allocation.topology import Topology
from gpushare.domain.devices import GPU
from gpushare.views.tables import build_table
from gpushare.views.topology import word_of


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """A choice, and what there is to say about it."""

    policy: str
    """As on the command line."""
    gpus: Sequence[GPU]
    """In the policy's order."""
    topology: Topology
    free: int
    """So many GPUs there were to choose from."""
    explanation: Explanation | None = None

    @property
    def indices(self) -> tuple[int, ...]:
        """The chosen GPUs, by index."""
        return tuple(gpu.index for gpu in self.gpus)


def build_answer(answer: Answer) -> str:
    """The GPUs, the links between them, and why these."""
    rows = [
        [str(gpu.index), gpu.uuid, gpu.product, gpu.bus_id or "-", "-" if gpu.numa_node is None else str(gpu.numa_node)]
        for gpu in answer.gpus
    ]
    parts = [build_table(["GPU", "UUID", "PRODUCT", "BUS", "NUMA"], rows)]
    links = {link.gpus: link for link in answer.topology.links}
    pairs = [
        [f"{one}-{two}", word_of(links.get((one, two))), str(answer.topology.score(one, two))]
        for one, two in combinations(sorted(answer.indices), 2)
    ]
    if pairs:
        total = ["all", "", str(answer.topology.score_of_set(answer.indices))]
        parts.append(build_table(["PAIR", "LINK", "SCORE"], [*pairs, total]))
    parts.append("\n".join(_reasons(answer)))
    return "\n\n".join(parts)


def build_document(answer: Answer) -> Mapping[str, Any]:
    """The same for programs."""
    explanation = answer.explanation
    body: dict[str, Any] = {
        "policy": answer.policy,
        "gpus": [{"index": gpu.index, "uuid": gpu.uuid, "product": gpu.product} for gpu in answer.gpus],
        "score": answer.topology.score_of_set(answer.indices),
        "pairs": [
            {"gpus": [one, two], "score": answer.topology.score(one, two)}
            for one, two in combinations(sorted(answer.indices), 2)
        ],
        "why": " ".join(line for line in _reasons(answer) if not line.startswith(" ")),
    }
    if explanation is not None:
        partition = explanation.partition
        body["partition"] = {
            "sets": [list(gpus) for gpus in partition.sets],
            "rest": list(partition.rest),
            "total": partition.total,
            "bound": partition.bound,
        }
    return body


def _reasons(answer: Answer) -> Iterator[str]:
    size = len(answer.gpus)
    if size == answer.free:
        yield f"There are no others: {size} are free."
    elif answer.policy == "simple":
        yield "simple takes the lowest indices, whatever their links."
    elif answer.policy != "best-effort":
        yield f"{answer.policy} takes the first set of its table for {size} that is free and holds what must be in."
    elif answer.explanation is not None:
        yield from _weighed_up(answer, answer.explanation)
    elif size == 1:
        yield "A single GPU has no links to weigh up: the lowest index, or the one that must be in."
    else:
        yield "All of them must be in."


def _weighed_up(answer: Answer, explanation: Explanation) -> Iterator[str]:
    partition, score_of = explanation.partition, answer.topology.score_of_set
    yield (
        f"best-effort divides the {answer.free} free GPUs into sets of {len(answer.gpus)}, as if every later request "
        f"asked for as many, so that all scores add up to the most: {partition.total}."
    )
    rows = [
        [" ".join(map(str, gpus)), str(score_of(gpus)), "taken" if gpus == partition.chosen else ""]
        for gpus in partition.sets
    ]
    if partition.rest:
        rows.append([" ".join(map(str, partition.rest)), str(score_of(partition.rest)), "left over"])
    for line in build_table(["SET", "SCORE", ""], rows).splitlines():
        yield f"  {line}"
    other = explanation.alternative
    if other is not None:
        gpus = ", ".join(map(str, other.gpus))
        if other.total < partition.total:
            yield f"GPU {gpus} would score {other.score}, but then all sets add up to {other.total} at most."
        else:
            yield f"GPU {gpus} would score {other.score}; of divisions with equal totals, the first in order is taken."
    if not partition.is_exact:
        yield f"It is not proven that there is no better division: one could add up to {partition.bound} at most."
