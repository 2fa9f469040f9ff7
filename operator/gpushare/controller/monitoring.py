"""What the controller answers over HTTP: whether it lives, whether it is ready, and its figures. Used by `running`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final

from gpushare.controller.looping import Passes
from gpushare.plan.figures import Figures, NodeFigures
from gpushare.serving import monitoring
from gpushare.serving.metrics import Counter, Gauge, Metric

_LONGEST_PASS_SECONDS: Final = 600.0
"""Thousands of nodes take a minute, and every request of a pass ends in half a minute."""
_LONGEST_TURN_SECONDS: Final = 120.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """The controller at one moment."""

    served: bool
    """The API server serves our kinds."""
    leading: bool
    passes: Passes
    objects: dict[str, int]
    """What it has seen, by plural name of the kind."""
    now: float = 0.0
    """By the clock of `passes`."""
    unspeakable: str = ""
    """Rights that are missing and cannot be told on a policy, for people."""
    watches_stand_seconds: float = 0.0
    """For how long the loop of the watches has not turned."""
    certificate: Gauge | None = None
    """When that of the webhook runs out; None: no webhook is served."""


class Monitoring(monitoring.Monitoring):
    """Metrics and health of the controller."""

    def __init__(self, read: Callable[[], Facts], figures: Callable[[], Figures]) -> None:
        """`figures` of the cluster are asked for only by who wants metrics, and told only by the replica that leads."""
        self._read = read
        self._figures = figures
        super().__init__()

    def why_not_alive(self) -> str:
        """Empty while its loops turn. That the API server is away is no reason: a restart would not bring it back."""
        facts = self._read()
        began = facts.passes.began
        if began is not None and facts.now - began > _LONGEST_PASS_SECONDS:
            return f"a pass has been running for {facts.now - began:.0f} s"
        if facts.watches_stand_seconds > _LONGEST_TURN_SECONDS:
            return f"the watches have been standing still for {facts.watches_stand_seconds:.0f} s"
        return ""

    def why_not_ready(self) -> str:
        """Empty when it works, or waits for its turn; a bad configuration of a user is no reason."""
        facts = self._read()
        if facts.unspeakable:
            return facts.unspeakable
        if not facts.served:
            return "the API server does not serve ClusterPolicy and GPUNode (yet)"
        if facts.leading and not facts.passes.synced:
            return "the watches have not told of everything yet"
        return ""

    def collect(self) -> Iterator[Metric]:
        """Its figures, as they are now."""
        facts = self._read()
        passes = facts.passes
        yield Gauge(name="gpushare_controller_leading", help="1 when this replica leads", value=facts.leading)
        yield Gauge(
            name="gpushare_controller_rights_missing",
            help="1 when the controller lacks a right without which it cannot write the status of a policy",
            value=bool(facts.unspeakable),
        )
        for result, count in (("done", passes.done), ("failed", passes.failed)):
            yield Counter(
                name="gpushare_controller_passes_total",
                help="passes that did all they had to, and those of which something failed",
                value=count,
                labels={"result": result},
            )
        yield Gauge(
            name="gpushare_controller_last_pass_duration_seconds",
            help="how long the last pass took",
            value=passes.seconds,
        )
        for kind, number in facts.objects.items():
            yield Gauge(
                name="gpushare_controller_objects",
                help="objects that the controller takes into account",
                value=number,
                labels={"kind": kind},
            )
        if facts.certificate is not None:
            yield facts.certificate
        # Told by all replicas, each policy and each node would count twice.
        if facts.leading:
            figures = self._figures()
            yield from _as_upstream(figures, passes)
            yield from _policy(figures)
            for node in figures.nodes:
                yield from _node(node)


def _as_upstream(figures: Figures, passes: Passes) -> Iterator[Metric]:
    """The figures of NVIDIA's operator that have a meaning here, under its names."""
    yield Gauge(name="gpu_operator_gpu_nodes_total", help="nodes with GPUs", value=figures.gpu_nodes)
    yield Gauge(
        name="gpu_operator_reconciliation_status",
        help="1 when the active policy is ready, 0 when it is not, -1 when there is none, or something of it failed",
        value=figures.reconciliation,
    )
    yield Gauge(
        name="gpu_operator_reconciliation_last_success_ts_seconds",
        help="when the last pass was done of which nothing failed, in seconds since 1970",
        value=passes.done_at,
    )
    yield Counter(name="gpu_operator_reconciliation_total", help="passes", value=passes.done + passes.failed)
    yield Counter(
        name="gpu_operator_reconciliation_failed_total",
        help="passes of which something failed",
        value=passes.failed,
    )
    yield Gauge(
        name="gpu_operator_reconciliation_has_nfd_labels",
        help="1 when node feature discovery labels nodes",
        value=figures.discovered,
    )


def _policy(figures: Figures) -> Iterator[Metric]:
    for condition in figures.conditions:
        yield Gauge(
            name="gpushare_policy_condition",
            help="always 1; the conditions of the active policy",
            value=1,
            labels={
                "policy": figures.policy,
                "condition": condition.type,
                "status": condition.status,
                "reason": condition.reason,
            },
        )


def _node(node: NodeFigures) -> Iterator[Metric]:
    config = node.config
    yield Gauge(
        name="gpushare_node_config_info",
        help="always 1; the configuration that a node was given, and by what: label, default or none",
        value=1,
        labels={"node": node.node, "config": config.name, "revision": config.revision, "by": config.reason.value},
    )
    for condition in node.unmet:
        yield Gauge(
            name="gpushare_node_unmet_condition",
            help="always 1; a condition of a node's GPUNode that is not as it should be",
            value=1,
            labels={"node": node.node, "condition": condition.type, "reason": condition.reason},
        )
