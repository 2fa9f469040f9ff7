"""The scheduler of one profile: makes a pass when something relevant changed, asks the profile's extenders, binds.

Made by `app`. Pods without extenders are placed without a pause, so that a pass sees one state of the cluster; with extenders
a pass may take long, and each pod sees what is there by then.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from gpushare.domain.manifests import Manifest
from gpushare.errors import ClusterRefused, ClusterUnavailable, Conflict
from gpushare.kube.backoff import Backoff
from gpushare.kube.cluster import Cluster
from gpushare.sandbox.loops.recording import Recorder
from gpushare.sandbox.scheduling import diagnosis, filtering, pending, scoring
from gpushare.sandbox.scheduling.amounts import Amounts
from gpushare.sandbox.scheduling.configuration import Profile
from gpushare.sandbox.scheduling.evicting import Evictor
from gpushare.sandbox.scheduling.extenders import Extender, ExtenderFailed
from gpushare.sandbox.scheduling.filtering import Filtered, Refusal
from gpushare.sandbox.scheduling.reporting import Reporter
from gpushare.sandbox.scheduling.resting import Resting
from gpushare.sandbox.scheduling.rooms import Room
from gpushare.sandbox.scheduling.standing import Standing

_RETRY_SECONDS = 300.0
"""As a real scheduler: however quiet the cluster is, pods that did not fit are tried again after this time."""
_ERROR = "SchedulerError"


@dataclass(frozen=True, slots=True, kw_only=True)
class Voice:
    """How a scheduler speaks to people."""

    recorder: Recorder
    reporter: Reporter


class Scheduler:
    """Places pods, in order of priority and age, on the nodes that its caches show."""

    def __init__(
        self,
        cluster: Cluster,
        standing: Standing,
        profile: Profile,
        extenders: Sequence[Extender],
        voice: Voice,
        *,
        log: logging.Logger,
    ) -> None:
        self._cluster = cluster
        self._standing = standing
        self._profile = profile
        self._extenders = extenders
        self._recorder = voice.recorder
        self._reporter = voice.reporter
        self._log = log
        self._wanted = asyncio.Event()
        self._resting = Resting()
        self._evictor = Evictor(cluster, standing, voice.recorder, log)
        self._backoff = Backoff(first=0.05, most=10.0)
        standing.pods.listen(self._see_pod)
        standing.nodes.listen(self._see_node)

    async def run(self) -> None:
        """Makes passes until cancelled. The caches are there."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self._reporter.run())
            while True:
                self._wanted.clear()
                await self._pass(group)
                soonest = min(_RETRY_SECONDS, self._reporter.seconds_until_due(), self._resting.seconds_until_due())
                try:
                    async with asyncio.timeout(soonest):
                        await self._wanted.wait()
                except TimeoutError:
                    continue

    async def _pass(self, group: asyncio.TaskGroup) -> None:
        waiting = pending.in_order(
            (pod for pod in self._standing.pods if not self._standing.is_assumed(pod)), self._profile.name
        )
        waiting = [pod for pod in waiting if not self._resting.rests(pod)]
        if not waiting:
            return
        for pod in waiting:
            extenders = [each for each in self._extenders if each.settings.is_interested(pod)]
            room = await self._place(pod, self._standing.rooms, extenders, group)
            if self._standing.pods.get((pod["metadata"]["namespace"], pod["metadata"]["name"])) is None:
                continue  # it went while it was asked about
            if room is not None:
                self._standing.assume(pod, room.name)
                group.create_task(self._bind(pod, room.name, extenders))

    def _asked(self, pod: Manifest) -> Amounts:
        asked, ignored = self._standing.requested(pod), self._profile.ignored
        return {name: amount for name, amount in asked.items() if name not in ignored} if ignored else asked

    async def _place(
        self, pod: Manifest, cluster: Mapping[str, Room], extenders: Sequence[Extender], group: asyncio.TaskGroup
    ) -> Room | None:
        asked = self._asked(pod)
        changes = self._resting.changes
        filtered = filtering.build_filtered(pod, asked, cluster)
        try:
            for extender in extenders:
                if filtered.fitting and extender.settings.filter_verb:
                    filtered = await _filtered_by(extender, pod, filtered)
            if filtered.fitting:
                scores = await self._scores(pod, filtered.fitting, extenders)
                return scoring.choose(pod, asked, filtered.fitting, scores)
        except ExtenderFailed as failure:
            self._fail(pod, failure)
            return None
        eviction = await self._evictor.decide(pod, asked, filtered, cluster, extenders)
        message = diagnosis.build_message(pod, filtered.refused, preempts=eviction is not None)
        self._reporter.report(pod, message)
        if extenders:
            # What changed while the extenders thought is not in their answer.
            self._resting.put(pod, due=self._resting.changes != changes)
        if eviction is not None:
            group.create_task(self._evictor.evict(pod, eviction))
        return None

    async def _scores(
        self, pod: Manifest, fitting: Sequence[Room], extenders: Sequence[Extender]
    ) -> Mapping[str, float]:
        total: dict[str, float] = {}
        nodes = {room.name: room.node for room in fitting}
        for extender in extenders:
            if len(nodes) < 2 or not extender.settings.prioritize_verb:
                continue
            try:
                scores = await extender.prioritize(pod, nodes)
            except ExtenderFailed as failure:
                # Only a preference: a real scheduler goes on without it too.
                self._log.info("no scores", extra={"reason": str(failure)})
                continue
            for node, score in scores.items():
                total[node] = total.get(node, 0.0) + score
        return total

    def _fail(self, pod: Manifest, why: Exception) -> None:
        self._reporter.report(pod, str(why), reason=_ERROR)
        self._resting.put(pod, due=True)
        self._wanted.set()  # for the time of its next try to be heard

    async def _bind(self, pod: Manifest, node: str, extenders: Sequence[Extender]) -> None:
        binding = next((each for each in extenders if each.settings.bind_verb), None)
        try:
            await (binding.bind(pod, node) if binding else self._bind_ourselves(pod, node))
        except ExtenderFailed as failure:
            self._standing.give_up(pod)
            if self._standing.pods.get((pod["metadata"]["namespace"], pod["metadata"]["name"])) is not None:
                self._fail(pod, failure)
            return
        except (Conflict, ClusterRefused, ClusterUnavailable) as error:
            # Most often the pod is gone, or was bound by hand: then the watch has said so, or will.
            about = {"pod": pod["metadata"]["name"], "node": node, "reason": str(error)}
            self._log.info("binding failed", extra=about)
            await asyncio.sleep(self._backoff.next())
            self._standing.give_up(pod)
            self._wanted.set()
            return
        self._backoff.reset()
        text = f"Successfully assigned {pod['metadata']['namespace']}/{pod['metadata']['name']} to {node}"
        self._recorder.normal(pod, "Scheduled", text, action="Binding")

    async def _bind_ourselves(self, pod: Manifest, node: str) -> None:
        metadata = pod["metadata"]
        binding = {
            "apiVersion": "v1",
            "kind": "Binding",
            "metadata": {"name": metadata["name"], "namespace": metadata["namespace"], "uid": metadata["uid"]},
            "target": {"apiVersion": "v1", "kind": "Node", "name": node},
        }
        await self._cluster.create(binding, subresource="binding", name=metadata["name"])

    def _see_pod(self, before: Manifest | None, after: Manifest | None) -> None:
        pod = after or before
        assert pod is not None
        uid = pod["metadata"]["uid"]
        if after is None or after["spec"].get("nodeName"):
            self._reporter.forget(uid)
            self._resting.forget(uid)
            self._evictor.forget(uid)
        if pending.is_relevant(before, after, self._profile.name):
            self._wake()

    def _see_node(self, before: Manifest | None, after: Manifest | None) -> None:
        if before is None or after is None or pending.node_facts(before) != pending.node_facts(after):
            self._wake()

    def _wake(self) -> None:
        self._resting.wake()
        self._wanted.set()


async def _filtered_by(extender: Extender, pod: Manifest, filtered: Filtered) -> Filtered:
    """What is left once an extender has had its say. Raises `ExtenderFailed` where it may not fail."""
    try:
        said = await extender.filter(pod, {room.name: room.node for room in filtered.fitting})
    except ExtenderFailed:
        if extender.settings.is_ignorable:
            return filtered
        raise
    refused = {name: Refusal((why,), is_final=False) for name, why in said.failed.items()}
    refused |= {name: Refusal((why,), is_final=True) for name, why in said.unresolvable.items()}
    return Filtered(
        fitting=tuple(room for room in filtered.fitting if room.name in said.fitting),
        refused={**filtered.refused, **refused},
    )
