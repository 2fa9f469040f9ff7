"""Who leads: one Lease, held by the replica whose work counts. Used by controller and scheduler, each with a Lease of its own.

The Lease is read at intervals, not watched: what a watch would save are seconds after a crash.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

from gpushare.domain import manifests
from gpushare.domain.manifests import Manifest
from gpushare.errors import GpuShareError
from gpushare.kube.backoff import Backoff
from gpushare.kube.cluster import Cluster
from gpushare.kube.complaints import Complaints

_DURATION_SECONDS = 12
"""How long a Lease counts that nobody renews: the longest gap after a crash."""
_RENEW_SECONDS = 4.0
_AGAIN_SECONDS = 1.0
"""After a renewal that failed."""
_GIVE_UP_SECONDS = 8.0
"""Without a renewal for so long the leader stops, well before somebody else may start."""
_RELEASE_SECONDS = 3.0
"""A process that is asked to stop has half a minute for everything."""
_CLOCK_DIFFERENCE_SECONDS = 60.0
"""The most by which the clocks of two nodes are thought to differ."""
_LONGEST_PAUSE_SECONDS = 5.0
"""Between two tries of who cannot even look."""


class Lease:
    """This process's part in the election."""

    def __init__(
        self,
        cluster: Cluster,
        namespace: str,
        name: str,
        identity: str,
        *,
        log: logging.Logger,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self._cluster = cluster
        self._namespace = namespace
        self._name = name
        self._identity = identity
        self.holder = ""
        """Who led when we last looked: ourselves, another replica, or nobody that we know of."""
        self.looked = asyncio.Event()
        """Set once the Lease was read for the first time."""
        self._log = log
        self._now = now
        self._seen: tuple[str, float] = ("", 0.0)
        """Version of somebody else's Lease, and when we first saw it by our own clock, since theirs may be wrong."""
        self._renewed = 0.0
        """When our last request for the Lease that was answered began: others may count from then on."""
        self._complaints = Complaints(lambda: asyncio.get_running_loop().time())

    async def acquire(self) -> bool:
        """Returns when we lead. A Lease that nobody holds, or that was ours before a restart, is taken at once.

        Returns:
            Whether another replica led until now.
        """
        told = ""
        backoff = Backoff(first=_RENEW_SECONDS / 5, most=_LONGEST_PAUSE_SECONDS)
        while True:
            try:
                holder = await self._look()
            except GpuShareError as error:
                self._complain("cannot take the lease", error)
                await asyncio.sleep(backoff.next())
                continue
            if holder == self._identity:
                self._log.info("leading", extra={"lease": self._name})
                return bool(told)
            if holder != told:
                self._log.info("another replica leads", extra={"holder": holder})
                told = holder
            backoff.reset()
            await asyncio.sleep(_RENEW_SECONDS / 5)

    async def hold(self) -> None:
        """Renews until somebody else leads, or until we could not renew for too long; then returns."""
        clock = asyncio.get_running_loop().time
        while (left := self._renewed + _GIVE_UP_SECONDS - clock()) > _AGAIN_SECONDS:
            await asyncio.sleep(_RENEW_SECONDS if left > _GIVE_UP_SECONDS - _RENEW_SECONDS else _AGAIN_SECONDS)
            try:
                async with asyncio.timeout_at(min(clock() + _RENEW_SECONDS, self._renewed + _GIVE_UP_SECONDS)):
                    if await self._look() != self._identity:
                        break
            except (GpuShareError, TimeoutError) as error:
                self._complain("cannot renew the lease", error)
        self._log.warning("no longer leading", extra={"lease": self._name})

    async def release(self) -> None:
        """Lets the next one lead at once. A failure only means that it has to wait."""
        try:
            async with asyncio.timeout(_RELEASE_SECONDS):
                await self._give_up()
        except (GpuShareError, TimeoutError) as error:
            self._log.info("the lease was not released", extra={"reason": str(error)})

    async def _give_up(self) -> None:
        lease = await self._get()
        held = (lease.get("spec") or {}) if lease is not None else {}
        if lease is not None and held.get("holderIdentity") == self._identity:
            # Left out rather than emptied: an empty one is refused.
            spec = {key: value for key, value in held.items() if key != "holderIdentity"}
            await self._cluster.replace({**lease, "spec": {**spec, "leaseDurationSeconds": 1}})

    async def _look(self) -> str:
        began = asyncio.get_running_loop().time()
        self.holder = await self._try()
        self._renewed = began
        self.looked.set()
        self._complaints.end()
        return self.holder

    def _complain(self, what: str, error: Exception) -> None:
        reason = str(error) or "no answer in time"
        if self._complaints.is_news(f"{what}: {reason}"):
            self._log.warning(what, extra={"reason": reason})

    async def _try(self) -> str:
        """Takes or renews the Lease where that is allowed. Returns who holds it now."""
        lease = await self._get()
        if lease is None:
            await self._cluster.create(self._build({}))
            return self._identity
        spec = lease.get("spec") or {}
        holder = str(spec.get("holderIdentity") or "")
        if holder not in {"", self._identity} and not self._has_run_out(lease):
            return holder
        lease["spec"] = self._build(spec)["spec"]
        await self._cluster.replace(lease)
        return self._identity

    async def _get(self) -> Manifest | None:
        return await self._cluster.get(manifests.LEASE, self._name, self._namespace)

    def _has_run_out(self, lease: Manifest) -> bool:
        spec, version = lease["spec"], str(lease["metadata"].get("resourceVersion", ""))
        seconds = float(spec.get("leaseDurationSeconds") or _DURATION_SECONDS)
        if self._is_ancient(str(spec.get("renewTime") or ""), seconds):
            return True
        clock = asyncio.get_running_loop().time()
        if self._seen[0] != version:
            self._seen = (version, clock)
        return clock - self._seen[1] > seconds

    def _is_ancient(self, renewed: str, seconds: float) -> bool:
        """Whether it ran out so long ago that no difference between two clocks explains it."""
        try:
            at = datetime.fromisoformat(renewed)
        except ValueError:
            return False
        return at.tzinfo is not None and (self._now() - at).total_seconds() > seconds + _CLOCK_DIFFERENCE_SECONDS

    def _build(self, before: dict[str, Any]) -> Manifest:
        now = self._now().strftime("%Y-%m-%dT%H:%M:%S.%fZ")  # a MicroTime: refused without microseconds
        ours = before.get("holderIdentity") == self._identity
        transitions = int(before.get("leaseTransitions") or 0)
        return {
            "apiVersion": manifests.LEASE.api_version,
            "kind": manifests.LEASE.kind,
            "metadata": {"name": self._name, "namespace": self._namespace},
            "spec": {
                "holderIdentity": self._identity,
                "leaseDurationSeconds": _DURATION_SECONDS,
                "acquireTime": before.get("acquireTime") or now if ours else now,
                "renewTime": now,
                "leaseTransitions": transitions if ours or not before else transitions + 1,
            },
        }
