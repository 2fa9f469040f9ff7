"""Writes the status of one pod, the newest whenever it gets the chance. One task a pod, asleep when nothing changes."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping
from typing import Any

from gpushare.domain import manifests
from gpushare.domain.manifests import Manifest
from gpushare.errors import ClusterRefused, ClusterUnavailable, Conflict
from gpushare.kube.backoff import Backoff
from gpushare.kube.cluster import Cluster, PatchType


class StatusWriter:
    """Brings what `build` returns to the API server."""

    def __init__(
        self, cluster: Cluster, pod: Manifest, build: Callable[[], dict[str, Any]], log: logging.Logger
    ) -> None:
        self._cluster = cluster
        self._metadata = pod["metadata"]
        self._build = build
        self._log = log
        self._written: Mapping[str, Any] = pod.get("status") or {}
        self._dirty = asyncio.Event()
        self._clean = asyncio.Event()
        self._clean.set()
        self._muted = False

    def request(self) -> None:
        """The status has changed; write it soon."""
        self._clean.clear()
        self._dirty.set()

    def mute(self) -> None:
        """Writes nothing from now on."""
        self._muted = True

    async def flush(self) -> None:
        """Returns once everything requested has been written, or cannot be."""
        await self._clean.wait()

    async def run(self) -> None:
        """Writes until cancelled."""
        backoff = Backoff()
        while True:
            await self._dirty.wait()
            self._dirty.clear()
            try:
                await self._write()
            except Conflict:
                pass  # another pod of that name; ours is gone
            except (ClusterRefused, ClusterUnavailable) as error:
                self._log.warning(
                    "cannot write pod status", extra={"pod": self._metadata["name"], "reason": str(error)}
                )
                await asyncio.sleep(backoff.next())
                self._dirty.set()
                continue
            backoff.reset()
            if not self._dirty.is_set():
                self._clean.set()

    async def _write(self) -> None:
        status = self._build()
        if self._muted or status == self._written:
            return
        body = {"metadata": {"uid": self._metadata["uid"]}, "status": _with_removals(status, self._written)}
        await self._cluster.patch(
            manifests.POD,
            self._metadata["name"],
            body,
            self._metadata["namespace"],
            patch_type=PatchType.STRATEGIC,
            subresource="status",
        )
        self._written = status


def _with_removals(status: Mapping[str, Any], before: Mapping[str, Any]) -> dict[str, Any]:
    """The status as a patch: a condition is merged into the one before it, so what it no longer has must be said."""
    known = {condition["type"]: condition for condition in before.get("conditions") or ()}
    conditions = [{**dict.fromkeys(known.get(one["type"], ())), **one} for one in status.get("conditions") or ()]
    return {**status, **({"conditions": conditions} if conditions else {})}
