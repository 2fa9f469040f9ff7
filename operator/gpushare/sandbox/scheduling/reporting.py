"""Tells people about pods that fit nowhere: the PodScheduled condition and the FailedScheduling event.

A pod is tried again whenever something changes, but what is said about it changes no faster than a real scheduler tries:
at once, then after 1, 2, 4, 8 and 10 seconds.
"""

from __future__ import annotations

import asyncio
import logging
import math
import time
from dataclasses import dataclass

from gpushare.domain import manifests
from gpushare.domain.manifests import Manifest
from gpushare.errors import ClusterRefused, ClusterUnavailable, Conflict
from gpushare.kube.cluster import Cluster, PatchType
from gpushare.sandbox.apiserver.objects import times
from gpushare.sandbox.loops.recording import Recorder

_FIRST_SECONDS = 1.0
_LAST_SECONDS = 10.0
_REPEAT_SECONDS = 300.0
"""The same thing is said again after this time."""


@dataclass(slots=True)
class _Said:
    message: str
    at: float
    pause: float
    due: float = math.inf
    """When something new may be said; infinite when there is nothing new."""


class Reporter:
    """Remembers what it has said about each pod."""

    def __init__(self, cluster: Cluster, recorder: Recorder, log: logging.Logger) -> None:
        self._cluster = cluster
        self._recorder = recorder
        self._log = log
        self._said: dict[str, _Said] = {}
        self._writes: asyncio.Queue[tuple[Manifest, str, str]] = asyncio.Queue()

    def report(self, pod: Manifest, message: str, *, reason: str = "Unschedulable") -> None:
        """Says why a pod does not fit, or what is broken: now, or when its next word is due and a pass brings it again."""
        uid, now = pod["metadata"]["uid"], time.monotonic()
        said = self._said.get(uid)
        if said is None:
            self._said[uid] = _Said(message, now, _FIRST_SECONDS)
        elif said.message == message and now - said.at < _REPEAT_SECONDS:
            said.due = math.inf
            return
        elif now - said.at < said.pause:
            said.due = said.at + said.pause
            return
        else:
            self._said[uid] = _Said(message, now, min(said.pause * 2, _LAST_SECONDS))
        self._recorder.warning(pod, "FailedScheduling", message, action="Scheduling")
        self._writes.put_nowait((pod, message, reason))

    def forget(self, uid: str) -> None:
        """The pod is bound or gone."""
        self._said.pop(uid, None)

    def seconds_until_due(self) -> float:
        """When the next pass has something to say; infinite when nothing waits."""
        due = min((said.due for said in self._said.values()), default=math.inf)
        return max(0.0, due - time.monotonic())

    async def run(self) -> None:
        """Writes conditions until cancelled."""
        while True:
            pod, message, reason = await self._writes.get()
            if pod["metadata"]["uid"] not in self._said:
                continue
            try:
                await self._write(pod, message, reason)
            except (Conflict, ClusterRefused, ClusterUnavailable) as error:
                self._log.info("condition lost", extra={"pod": pod["metadata"]["name"], "reason": str(error)})

    async def _write(self, pod: Manifest, message: str, reason: str) -> None:
        metadata = pod["metadata"]
        condition = {
            "type": "PodScheduled",
            "status": "False",
            "reason": reason,
            "message": message,
            "observedGeneration": metadata.get("generation", 1),
            "lastProbeTime": None,
        }
        known = [known for known in pod.get("status", {}).get("conditions") or [] if known["type"] == "PodScheduled"]
        if not known or known[0]["status"] != "False":
            condition["lastTransitionTime"] = times.seconds_text(time.time())
        # With the version, so that a pod that was bound meanwhile is not called unscheduled.
        known_as = {"uid": metadata["uid"], "resourceVersion": metadata["resourceVersion"]}
        await self._cluster.patch(
            manifests.POD,
            metadata["name"],
            {"metadata": known_as, "status": {"conditions": [condition]}},
            metadata["namespace"],
            patch_type=PatchType.STRATEGIC,
            subresource="status",
        )
