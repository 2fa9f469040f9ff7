"""One pass: from what was seen to what should be to what is written. Called by `looping`, one pass at a time."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable

from gpushare.controller import rivals
from gpushare.controller.effects import Effects
from gpushare.controller.pacing import Pace
from gpushare.controller.searching import ConfigMapSearch
from gpushare.controller.snapshotting import Store
from gpushare.domain import manifests
from gpushare.domain.events import EventNote, EventType
from gpushare.errors import ClusterRefused, Conflict, GpuShareError
from gpushare.kube import clock
from gpushare.kube.cluster import Cluster
from gpushare.kube.events import EventPoster
from gpushare.plan import conflicts, policies
from gpushare.plan.build import Plan, build_blocked, build_plan
from gpushare.plan.events import Standing
from gpushare.plan.status import PolicyStatus

_STATUS_SECONDS = 1.0
"""The status of one policy is not written more often in the long run."""
_STATUS_BURST = 30
"""What a person types, change after change, is answered at once; a long roll-out is what must be paced."""
_FAILURE_SECONDS = 30.0
_FAILURE_BURST = 5
"""How soon a new reason of a failure is told, and how often: some name a time or a port, and differ each time."""

_RIVAL_SECONDS = 20.0
"""How often another operator is looked for again where it was found: people end it and wait for us."""

Request = Callable[[str, float], None]
"""Asks for another pass: why, and in how many seconds."""


class Reconciler:
    """Keeps from pass to pass only what a plan wants back, and when what was last written."""

    def __init__(
        self,
        cluster: Cluster,
        store: Store,
        effects: Effects,
        poster: EventPoster,
        *,
        request: Request,
        log: logging.Logger,
    ) -> None:
        self._cluster = cluster
        self._store = store
        self._effects = effects
        self._poster = poster
        namespace = store.settings.namespace
        self.search = ConfigMapSearch(cluster, namespace, lambda: request("elsewhere", 0.0), log)
        """To be run beside the passes."""
        self._request = request
        self._log = log
        self._standing: Standing | None = None
        self._active: str | None = None
        """Name of the policy that was followed last, or why none is; None before the first pass."""
        self.misnamed = ""
        """`Plan.misnamed` of the last pass."""
        self._pace = Pace(time.monotonic, seconds=_STATUS_SECONDS, burst=_STATUS_BURST)
        self._failing = Pace(time.monotonic, seconds=_FAILURE_SECONDS, burst=_FAILURE_BURST)

    async def report_blocked(self, problem: str) -> None:
        """Says on the active policy why nothing can be done, while too little is seen to decide anything else."""
        status = build_blocked(self._store.snapshot(), clock.now(), problem)
        for failure in await self._report([status] if status is not None else []):
            self._log.warning("status of policy not written", extra={"reason": str(failure)})

    async def run_pass(self) -> None:
        """Raises what failed, after everything else was tried; where it was more than one, the worst of it."""
        # People create it in the wrong namespace; in ours, a watch tells of it anyway.
        await self.search.look_for(policies.missing_config_map(self._store.snapshot()))
        self._store.config_maps_elsewhere = tuple(self.search.found)
        self._effects.see_contention()
        plan = await self._decide()
        if plan.wake_seconds is not None:
            self._request("grace", plan.wake_seconds)
        self._follow(plan)
        failures = await self._carry_out(plan)
        self._poster.post(plan.events)
        # The log of a new process begins with what is wrong, also where that was told before.
        standing = plan.standing.values() if self._standing is None else ()
        self._tell({*plan.events, *(note for note in standing if note.type is EventType.WARNING)})
        self._standing = plan.standing
        self._store.unshown = plan.unshown
        failures += await self._report(plan.policies)
        if failures:
            self._log.info("writes failed", extra={"count": len(failures)})
            # A conflict solves itself by the next pass, the others may not.
            raise min(failures, key=lambda failure: isinstance(failure, Conflict))

    async def _decide(self) -> Plan:
        plan = build_plan(self._store.snapshot(), clock.now(), self._standing)
        # Another operator may have started since the last resync and taken back what is its, or may be gone by now.
        if plan.takes_over or conflicts.awaits_another(self._store.snapshot()):
            await rivals.look(self._cluster, self._store)
            plan = build_plan(self._store.snapshot(), clock.now(), self._standing)
        if conflicts.awaits_another(self._store.snapshot()):
            self._request("rival", _RIVAL_SECONDS)
        return plan

    def _follow(self, plan: Plan) -> None:
        before, self._active, self.misnamed = self._active, plan.active or plan.misnamed, plan.misnamed
        if self._active == before:
            return
        if plan.misnamed:
            self._log.warning("nothing is changed", extra={"reason": plan.misnamed})
        elif plan.active:
            self._log.info("following policy", extra={"policy": plan.active})
        else:
            self._log.info("no policy: what the operator made is removed")

    def _tell(self, notes: Iterable[EventNote]) -> None:
        """Logs what is told on policies, which sums up what is told on nodes and ConfigMaps."""
        for note in notes:
            if note.regarding.kind == manifests.CLUSTER_POLICY:
                level = logging.WARNING if note.type is EventType.WARNING else logging.INFO
                about = {"policy": note.regarding.name, "event": note.reason, "text": note.message}
                self._log.log(level, "told on the policy", extra=about)

    async def _carry_out(self, plan: Plan) -> list[GpuShareError]:
        effects = self._effects
        broken = await effects.apply_components(plan.components)
        # Conditions come after the specs, for a GPUNode that is not there has no status.
        parts = {
            "pod security": await effects.secure_namespace(plan.pod_security),
            "taints": await effects.taint(plan.node_taints),
            "gpunodes": await effects.assign(plan.gpu_nodes),
            "conditions": await effects.set_conditions(plan.gpu_node_conditions),
            "labels": await effects.label(plan.node_labels),
            "removal": await effects.prune(plan.prune),
            "removal of gpunodes": await effects.remove_gpu_nodes(plan.gpu_node_removals),
        }
        refused = {
            name: [error for error in errors if isinstance(error, ClusterRefused)] for name, errors in parts.items()
        }
        texts = {name: str(error) for name, error in broken.items()}
        texts |= {name: min(map(str, errors)) for name, errors in refused.items() if errors}
        if texts != self._store.failures:
            self._store.failures = texts
            if not (wait := self._failing.wait("failures")):
                self._failing.count("failures")
            self._request("failures", wait)
        return [*broken.values(), *(error for errors in parts.values() for error in errors)]

    async def _report(self, statuses: Iterable[PolicyStatus]) -> list[GpuShareError]:
        failures: list[GpuShareError] = []
        for status in statuses:
            if (wait := self._pace.wait(status.name)) > 0:
                self._request("status", wait)
                continue
            try:
                await self._effects.report(status)
                self._pace.count(status.name)
            except GpuShareError as error:
                failures.append(error)
        return failures
