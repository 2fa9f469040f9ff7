"""What the controller answers over HTTP: whether it lives, whether it is ready, and its figures. Used by `running`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final

from gpushare.controller.looping import Passes
from gpushare.plan.figures import Figures, NodeFigures
from gpushare.serving import metrics, monitoring
from gpushare.serving.metrics import Gauge, Metric

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
    misnamed: str = ""
    """Why nothing is changed, where the policy that was named is not there, for people."""
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
        return facts.misnamed if facts.leading else ""

    def collect(self) -> Iterator[Metric]:
        """Its figures, as they are now."""
        facts = self._read()
        passes = facts.passes
        yield metrics.gauge("gpushare_controller_leading", "1 when this replica leads", facts.leading)
        yield metrics.gauge(
            "gpushare_controller_rights_missing",
            "1 when the controller lacks a right without which it cannot write the status of a policy",
            bool(facts.unspeakable),
        )
        for result, count in (("done", passes.done), ("failed", passes.failed)):
            yield metrics.counter(
                "gpushare_controller_passes_total",
                "passes that did all they had to, and those of which something failed",
                count,
                result=result,
            )
        yield metrics.gauge(
            "gpushare_controller_last_pass_duration_seconds", "how long the last pass took", passes.seconds
        )
        for kind, number in facts.objects.items():
            yield metrics.gauge(
                "gpushare_controller_objects", "objects that the controller takes into account", number, kind=kind
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
    yield metrics.gauge("gpu_operator_gpu_nodes_total", "nodes with GPUs", figures.gpu_nodes)
    yield metrics.gauge(
        "gpu_operator_reconciliation_status",
        "1 when the active policy is ready, 0 when it is not, -1 when there is none, or something of it failed",
        figures.reconciliation,
    )
    yield metrics.gauge(
        "gpu_operator_reconciliation_last_success_ts_seconds",
        "when the last pass was done of which nothing failed, in seconds since 1970",
        passes.done_at,
    )
    yield metrics.counter("gpu_operator_reconciliation_total", "passes", passes.done + passes.failed)
    yield metrics.counter("gpu_operator_reconciliation_failed_total", "passes of which something failed", passes.failed)
    yield metrics.gauge(
        "gpu_operator_reconciliation_has_nfd_labels", "1 when node feature discovery labels nodes", figures.discovered
    )


def _policy(figures: Figures) -> Iterator[Metric]:
    for condition in figures.conditions:
        yield metrics.gauge(
            "gpushare_policy_condition",
            "always 1; the conditions of the active policy",
            1,
            policy=figures.policy,
            condition=condition.type,
            status=condition.status,
            reason=condition.reason,
        )


def _node(node: NodeFigures) -> Iterator[Metric]:
    config = node.config
    yield metrics.gauge(
        "gpushare_node_config_info",
        "always 1; the configuration that a node was given, and by what: label, ack, hami, default or none",
        1,
        node=node.node,
        config=config.name,
        revision=config.revision,
        by=config.reason.value,
    )
    for condition in node.unmet:
        yield metrics.gauge(
            "gpushare_node_unmet_condition",
            "always 1; a condition of a node's GPUNode that is not as it should be",
            1,
            node=node.node,
            condition=condition.type,
            reason=condition.reason,
        )
