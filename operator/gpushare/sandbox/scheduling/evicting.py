"""Preemption: decides with the extenders who has to go for a pod that fits nowhere, and sends them away. Called by `placing`."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from gpushare.domain import manifests
from gpushare.domain.manifests import Manifest
from gpushare.errors import ClusterRefused, ClusterUnavailable, Conflict
from gpushare.kube.cluster import Cluster
from gpushare.sandbox.loops.recording import Recorder
from gpushare.sandbox.scheduling import preempting
from gpushare.sandbox.scheduling.amounts import Amounts
from gpushare.sandbox.scheduling.extenders import Extender, ExtenderFailed
from gpushare.sandbox.scheduling.filtering import Filtered
from gpushare.sandbox.scheduling.preempting import Victims
from gpushare.sandbox.scheduling.rooms import Room
from gpushare.sandbox.scheduling.standing import Standing


@dataclass(frozen=True, slots=True, kw_only=True)
class Eviction:
    """Pods that go, so that another one can come to their node."""

    node: str
    victims: Sequence[Manifest]


class Evictor:
    """Makes room for the pods of one scheduler."""

    def __init__(self, cluster: Cluster, standing: Standing, recorder: Recorder, log: logging.Logger) -> None:
        self._cluster = cluster
        self._standing = standing
        self._recorder = recorder
        self._log = log
        self._nominated: dict[str, str] = {}
        """By uid of a pod: the node where others make room for it."""

    async def decide(
        self,
        pod: Manifest,
        asked: Amounts,
        filtered: Filtered,
        rooms: Mapping[str, Room],
        extenders: Sequence[Extender],
    ) -> Eviction | None:
        """Who would have to go; None where that helps nowhere, or where others are on their way out already."""
        importance = preempting.priority_of(pod)
        if all(preempting.priority_of(other) >= importance for other in self._standing.pods):
            return None
        tenants, uid = self._standing.tenants(), pod["metadata"]["uid"]
        nominated = self._nominated.get(uid, "")
        if not preempting.is_eligible(pod, nominated, tenants.get(nominated, ())):
            return None
        victims = preempting.find_victims(pod, asked, filtered, rooms, tenants)
        for extender in extenders:
            if victims and extender.settings.preempt_verb:
                victims = await self._ask(extender, pod, victims)
        node = preempting.choose_node(victims)
        if node is None:
            return None
        self._nominated[uid] = node
        return Eviction(node=node, victims=victims[node])

    async def evict(self, pod: Manifest, eviction: Eviction) -> None:
        """Sends the victims away, and notes on the pod where it is going to be."""
        about = pod["metadata"]
        try:
            for victim in eviction.victims:
                metadata = victim["metadata"]
                text = f"Preempted by pod {about['uid']} on node {eviction.node}"
                if await self._cluster.delete(
                    manifests.POD, metadata["name"], metadata["namespace"], uid=metadata["uid"]
                ):
                    self._recorder.normal(victim, "Preempted", text, action="Preempting")
            await self._cluster.patch(
                manifests.POD,
                about["name"],
                {"metadata": {"uid": about["uid"]}, "status": {"nominatedNodeName": eviction.node}},
                about["namespace"],
                subresource="status",
            )
        except (Conflict, ClusterRefused, ClusterUnavailable) as error:
            self._log.info("preemption is not complete", extra={"pod": about["name"], "reason": str(error)})

    def forget(self, uid: str) -> None:
        """The pod is bound or gone."""
        self._nominated.pop(uid, None)

    async def _ask(self, extender: Extender, pod: Manifest, victims: Victims) -> Victims:
        try:
            left = await extender.preempt(pod, victims)
        except ExtenderFailed as failure:
            self._log.info("no answer about victims", extra={"reason": str(failure)})
            return victims if extender.settings.is_ignorable else {}
        tenants = self._standing.tenants()
        return {
            node: [other for other, _ in tenants.get(node, ()) if other["metadata"]["uid"] in uids]
            for node, uids in left.items()
            if uids
        }
