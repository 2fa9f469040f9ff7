"""What an agent tells: its log, the status of its GPUNode, and facts for whoever asks. Used by `running` after each pass."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from gpushare.agent.deciding import Assignment, Decision
from gpushare.agent.devices import DeviceWatch
from gpushare.agent.holding import HolderWatch
from gpushare.agent.mps_readiness import MpsReadiness
from gpushare.agent.reconciling import Reconciler
from gpushare.agent.serving_pools import ServingPools

if TYPE_CHECKING:
    # Everything about reporting is loaded where it is used: after the first list, which the kubelet is waiting for.
    from gpushare.agent.facts import Facts
    from gpushare.agent.fractions.running import Fractions
    from gpushare.agent.publishing import Publisher
    from gpushare.domain.gpunode import GPUNodeStatus


@dataclass(frozen=True, slots=True, kw_only=True)
class Parts:
    """The parts of an agent that know something."""

    devices: DeviceWatch
    holders: HolderWatch
    pools: ServingPools
    mps: MpsReadiness
    reconciler: Reconciler


class Telling:
    """Puts together what the parts know, and says it once."""

    def __init__(self, parts: Parts, log: logging.Logger) -> None:
        self.publisher: Publisher | None = None
        """None: there is no cluster to tell."""
        self.fractions: Fractions | None = None
        """None: this node gives out none."""
        self._parts = parts
        self._log = log
        self._decided_on: Assignment | None = None
        """What the last pass was about; a newer one may have come since."""
        self._labels: Mapping[str, str] = {}
        """As last known; they stay while the driver does not answer."""
        self._before: GPUNodeStatus | None = None
        """What an agent before this one has reported; None: not read yet."""
        self._reloads: Counter[str] = Counter()
        """Configurations by what became of them."""

    def know_before(self, status: GPUNodeStatus) -> None:
        """What an agent before this one has reported: labels and holders stay until this one knows better."""
        if self._before is None:
            self._before = status
            self._labels = self._labels or status.labels
            self.report()

    def tell(self, assignment: Assignment | None, before: Decision | None, decision: Decision) -> None:
        """A pass has ended: `decision` on `assignment` is carried out, where `before` was."""
        if assignment is not None and assignment != self._decided_on:
            self._reloads[_result(before, decision)] += 1
        is_news = assignment != self._decided_on or before is None or _outcome(before) != _outcome(decision)
        self._decided_on = assignment
        if is_news:
            self._log_outcome(decision)
        self.report(urgent=is_news)

    def facts(self) -> Facts | None:
        """Everything that the agent knows now; None before its first pass."""
        decision = self._parts.reconciler.decision
        if decision is None:
            return None
        from gpushare import labels
        from gpushare.agent.facts import Counts, Facts

        inventory, host_facts = self._parts.devices.inventory, self._parts.devices.facts
        if inventory is not None and host_facts is not None:
            strategy = decision.settings.mig_strategy
            # Of what was decided: shares that wait for their MPS daemon are not offered yet, and its DaemonSet selects
            # nodes by a label.
            self._labels = labels.build_labels(inventory, decision.pools, host_facts, strategy)
        return Facts(
            decision=decision,
            generation=self._decided_on.generation if self._decided_on is not None else None,
            inventory=inventory,
            link_problems=self._parts.devices.linking.problems,
            topology=self._parts.devices.linking.topology,
            failure=self._parts.devices.failure,
            pools=self._parts.pools.pools,
            waiting=self._parts.mps.reasons,
            standings=self._parts.pools.standings,
            holders=self._parts.holders.holders,
            reported=self._before.allocations
            if self._before is not None and not self._parts.holders.is_known
            else None,
            labels=self._labels,
            troubles=self._parts.devices.troubles,
            streams=self._parts.pools.streams,
            fractions=self.fractions.holdings() if self.fractions is not None else {},
            counts=Counts(
                errors=self._parts.devices.errors,
                reloads=self._reloads,
                kubelet=self._parts.pools.counts,
                refusals=self.fractions.refusals if self.fractions is not None else {},
            ),
        )

    def report(self, *, urgent: bool = False) -> None:
        """Offers the newest status to whoever publishes it. `urgent`: somebody waits for the result of a configuration."""
        if self.publisher is None or (facts := self.facts()) is None:
            return
        if facts.inventory is not None and self._parts.devices.facts is None:
            # In a moment; a status without labels would take them off the node meanwhile.
            return
        from gpushare.agent import reporting

        self.publisher.offer(reporting.build_status(facts), urgent=urgent)

    def _log_outcome(self, decision: Decision) -> None:
        extra = {"revision": decision.revision, "config": self._decided_on.name if self._decided_on else ""}
        if decision.refusal:
            problems = [str(problem) for problem in decision.refusal]
            self._log.warning("configuration refused", extra={**extra, "problems": problems})
        else:
            notes = [str(note) for note in decision.notes]
            self._log.info("configuration in force", extra={**extra, "warnings": notes})


def _result(before: Decision | None, decision: Decision) -> str:
    if decision.refusal:
        return "refused"
    return "unchanged" if before is not None and before.in_force == decision.in_force else "applied"


def _outcome(decision: Decision) -> object:
    return decision.revision, decision.refusal, decision.notes
