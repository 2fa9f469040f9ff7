"""What the scheduler tells of itself: whether it is ready, and its figures. Used by `running`."""

from __future__ import annotations

from collections import Counter as Tally
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from gpushare.placement.quotas import Charge, Quota
from gpushare.scheduler.books import Books
from gpushare.scheduler.timing import BOUNDS, Spread
from gpushare.serving import metrics, monitoring
from gpushare.serving.metrics import Gauge, Histogram, Metric

_MIB = 1024 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """The scheduler at one moment."""

    missing: Sequence[str]
    """Kinds of which not everything has been seen yet."""
    leading: bool
    leader_known: bool
    books: Books
    waiting: int
    """Pods that wait for others on their node."""
    binds: Mapping[str, int]
    """By result."""
    verdicts: Mapping[str, int]
    """Of admission."""
    corrections: int
    strangers: int
    spreads: Mapping[str, Spread]
    """Durations of answers by verb."""
    quotas: Mapping[str, tuple[Quota, Charge]]
    certificate: Gauge


class Monitoring(monitoring.Monitoring):
    """Metrics and health of the scheduler."""

    def __init__(self, read: Callable[[], Facts]) -> None:
        self._read = read
        super().__init__()

    def why_not_ready(self) -> str:
        """Empty when it can answer, by itself or through the leader."""
        facts = self._read()
        if facts.missing:
            return f"not everything has been seen yet of {', '.join(facts.missing)}"
        if not (facts.leading or facts.leader_known):
            return "no replica leads yet"
        return ""

    def collect(self) -> Iterator[Metric]:
        """Its figures. Those of single GPUs are told by the agents."""
        facts = self._read()
        yield facts.certificate
        yield metrics.gauge("gpushare_scheduler_leading", "1 when this replica decides", facts.leading)
        yield from _collect_nodes(facts.books)
        yield from _collect_pods(facts)
        yield from _collect_quotas(facts.quotas)
        for verb, spread in facts.spreads.items():
            yield Histogram(
                name="gpushare_scheduler_request_duration_seconds",
                help="how long kube-scheduler waited for an answer; for bind, with the wait for other pods on the node",
                bounds=BOUNDS,
                counts=tuple(spread.counts),
                sum=spread.sum,
                labels={"verb": verb},
            )


def _collect_nodes(books: Books) -> Iterator[Metric]:
    states = Tally(
        "ready" if node.is_ready and node.is_settled else "not_ready"
        for node in books.nodes.values()
        if node.mode is not None
    )
    for state in ("ready", "not_ready"):
        yield metrics.gauge(
            "gpushare_scheduler_nodes",
            "nodes that serve fractions; those that are not ready get no pods",
            states[state],
            state=state,
        )
    totals = {"allocated": 0, "total": 0}
    for node in books.nodes.values():
        totals["total"] += sum(gpu.traits.memory_mib for gpu in node.gpus)
        totals["allocated"] += sum(use.memory_mib for use in node.uses)
    for what, mib in totals.items():
        yield metrics.gauge(
            f"gpushare_scheduler_memory_{what}_bytes",
            ("memory that pods hold" if what == "allocated" else "memory") + " of GPUs that serve fractions",
            mib * _MIB,
        )


def _collect_pods(facts: Facts) -> Iterator[Metric]:
    stages = Tally(placed.stage.name.lower() for placed in facts.books.pods.values())
    for stage in ("reserved", "bound", "confirmed"):
        yield metrics.gauge(
            "gpushare_scheduler_pods",
            "pods with GPUs by how far they have come: reserved for, bound to their node, confirmed by it",
            stages[stage],
            stage=stage,
        )
    yield metrics.gauge(
        "gpushare_scheduler_pods_waiting",
        "pods that wait until their node has started others, for which they could be taken",
        facts.waiting,
    )
    for result, count in facts.binds.items():
        yield metrics.counter(
            "gpushare_scheduler_binds_total", "what became of pods that were to be bound", count, result=result
        )
    for verdict in ("unchanged", "changed", "refused"):
        yield metrics.counter(
            "gpushare_scheduler_admissions_total",
            "what became of pods at admission",
            facts.verdicts.get(verdict, 0),
            verdict=verdict,
        )
    yield metrics.counter(
        "gpushare_scheduler_corrections_total",
        "pods to which the kubelet gave other GPUs than those decided",
        facts.corrections,
    )
    yield metrics.counter(
        "gpushare_scheduler_strangers_total",
        "pods with GPUs on nodes that serve fractions about which another scheduler, or nobody, has decided",
        facts.strangers,
    )


def _collect_quotas(quotas: Mapping[str, tuple[Quota, Charge]]) -> Iterator[Metric]:
    for namespace, (quota, used) in quotas.items():
        for what, limit, amount, scale in (
            ("memory_bytes", quota.memory_mib, used.memory_mib, _MIB),
            ("cores_percent", quota.cores, used.cores, 1),
        ):
            if limit is None:
                continue
            for figure, value in (("limit", limit), ("used", amount)):
                yield metrics.gauge(
                    f"gpushare_scheduler_quota_{what}",
                    "quotas of namespaces on GPUs and what is used of them, all GPUs of a pod counted",
                    value * scale,
                    namespace=namespace,
                    figure=figure,
                )
