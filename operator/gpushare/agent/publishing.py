"""Writes the status of this node's GPUNode. Run by the agent beside everything else, which never waits for it."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping
from typing import Any, Final

from gpushare import names
from gpushare.domain import manifests
from gpushare.domain.conditions import Condition, with_times
from gpushare.domain.manifests import Manifest
from gpushare.errors import ClusterRefused, ClusterUnavailable, Conflict
from gpushare.kube import clock
from gpushare.kube.backoff import Backoff
from gpushare.kube.cluster import Cluster

INTERVAL_SECONDS: Final = 1.0
REFUSED_SECONDS: Final = 30.0
LONGEST_CORRECTION_SECONDS: Final = 300.0
"""Somebody who writes something else again and again (another agent, by mistake) is contradicted ever more slowly."""
_CONDITIONS: Final = "conditions"


class Publisher:
    """Applies the newest status, at most once a second, and only where the API server has another one."""

    def __init__(self, cluster: Cluster, node: str, log: logging.Logger) -> None:
        self._cluster = cluster
        self._node = node
        self._log = log
        self._status: dict[str, Any] | None = None
        self._published: dict[str, Any] | None = None
        self._seen: Manifest = {}
        """The object as the API server last told."""
        self._version = ""
        """Of the object as our last write has left it."""
        self._conditions: tuple[Condition, ...] = ()
        """As last written or seen; they keep the times of their changes."""
        self._is_failing = False
        self._changed = asyncio.Event()
        self._urgent = asyncio.Event()
        self._backoff = Backoff(first=0.2, most=REFUSED_SECONDS)
        self._correcting = Backoff(first=INTERVAL_SECONDS, most=LONGEST_CORRECTION_SECONDS)

    def offer(self, status: dict[str, Any], *, urgent: bool) -> None:
        """Makes this the status to publish. `urgent`: at once; somebody waits for the result of a configuration."""
        if status == self._status:
            return
        self._status = status
        self._correcting.reset()
        self._changed.set()
        if urgent:
            self._urgent.set()

    def see(self, node: Manifest | None) -> None:
        """Takes note of the GPUNode as the API server has it; None: it is not there."""
        is_other = _uid(node or {}) != _uid(self._seen)
        self._seen = node or {}
        self._changed.set()
        if self._is_failing:
            # It answers again: no reason to wait any longer.
            self._urgent.set()
        if is_other and node is not None:
            # Another object than before, or the first: it has to be told everything.
            seen = (node.get("status") or {}).get(_CONDITIONS, ())
            self._conditions = tuple(map(Condition.from_json, seen))
            self._published = None
            self._urgent.set()

    async def run(self) -> None:
        """Publishes for ever; ends by being cancelled."""
        # Where it starts again after a failure of ours: what was to be written then still is.
        self._changed.set()
        while True:
            await self._changed.wait()
            self._changed.clear()
            self._urgent.clear()
            pause = await self._publish()
            if pause:
                try:
                    async with asyncio.timeout(pause):
                        await self._urgent.wait()
                except TimeoutError:
                    pass

    async def _publish(self) -> float:
        """Writes if there is anything to write. Returns the seconds to wait before the next one."""
        status = self._status
        is_news = status != self._published
        if status is None or not _uid(self._seen) or not (is_news or self._was_overwritten(status)):
            return 0
        try:
            await self._write(status)
        except (ClusterUnavailable, ClusterRefused, Conflict) as error:
            self._log.warning("status not published", extra={"reason": str(error)})
            self._changed.set()
            self._is_failing = not isinstance(error, ClusterRefused)
            return self._backoff.next() if self._is_failing else REFUSED_SECONDS
        self._backoff.reset()
        self._is_failing = False
        self._published = status
        # Somebody may have changed the object while it was written: it is looked at once more.
        self._changed.set()
        return INTERVAL_SECONDS if is_news else self._correcting.next()

    def _was_overwritten(self, status: Mapping[str, Any]) -> bool:
        """Whether the API server has something else than we wrote last, as after a patch by hand.

        What is older than our write tells nothing: it only has come later.
        """
        seen = self._seen["metadata"].get("resourceVersion", "")
        if not (seen.isdecimal() and self._version.isdecimal() and int(seen) > int(self._version)):
            return False
        return not _holds(self._seen.get("status") or {}, status)

    async def _write(self, status: dict[str, Any]) -> None:
        wanted = map(Condition.from_json, status[_CONDITIONS])
        conditions = with_times(wanted, self._conditions, clock.now())
        manifest = {
            "apiVersion": manifests.GPU_NODE.api_version,
            "kind": manifests.GPU_NODE.kind,
            # With the uid: should the object have been replaced meanwhile, the new one is told by the next write.
            "metadata": {"name": self._node, "uid": _uid(self._seen)},
            "status": {**status, _CONDITIONS: [condition.to_json() for condition in conditions]},
        }
        written = await self._cluster.apply(manifest, manager=names.MANAGER_AGENT, force=True, subresource="status")
        self._version = written["metadata"].get("resourceVersion", "")
        self._conditions = conditions


def _uid(node: Manifest) -> str:
    return str(node.get("metadata", {}).get("uid", ""))


def _holds(seen: Mapping[str, Any], written: Mapping[str, Any]) -> bool:
    """Whether everything that was written is still so. Conditions of others stand among ours, and times are not compared."""
    conditions = {body["type"]: _said(body) for body in seen.get(_CONDITIONS, ())}
    return all(conditions.get(body["type"]) == _said(body) for body in written[_CONDITIONS]) and all(
        seen.get(key) == value for key, value in written.items() if key != _CONDITIONS
    )


def _said(condition: Mapping[str, Any]) -> tuple[Any, ...]:
    return tuple(condition.get(key) for key in ("status", "reason", "message", "observedGeneration"))
