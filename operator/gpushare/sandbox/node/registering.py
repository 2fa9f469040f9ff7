"""The node's own objects: registers the Node, keeps its status and its Lease fresh. One task a node, asleep in between."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Mapping
from typing import Any

from gpushare import names
from gpushare.domain import manifests
from gpushare.domain.manifests import Manifest
from gpushare.errors import ClusterRefused, ClusterUnavailable, Conflict
from gpushare.kube.backoff import Backoff
from gpushare.kube.cluster import Cluster, PatchType
from gpushare.sandbox.apiserver.objects import times
from gpushare.sandbox.loops.recording import Recorder
from gpushare.sandbox.node import building, voices
from gpushare.sandbox.node.devices import Counts
from gpushare.sandbox.node.specs import NodeSpec, Pace

_STATUS_SECONDS = 300.0
"""Between two heartbeats in the Node's status where nothing changes: `nodeStatusReportFrequency`."""
_FAILURES = (ClusterRefused, ClusterUnavailable, Conflict)


class NodeKeeper:
    """Writes one Node."""

    def __init__(
        self,
        spec: NodeSpec,
        cluster: Cluster,
        recorder: Recorder,
        counts: Callable[[], Mapping[str, Counts]],
        pace: Pace,
        log: logging.Logger,
    ) -> None:
        """Asks `counts` for the devices each time that it writes."""
        self._spec = spec
        self._cluster = cluster
        self._recorder = recorder
        self._counts = counts
        self._pace = pace
        self._log = log
        self._changed = asyncio.Event()
        self._writing = asyncio.Lock()
        self._node: Manifest = {}
        self._port = 0
        self._since = ""
        self._written: dict[str, Any] = {}
        self._beat_at = 0.0
        self.registered = asyncio.Event()
        """Set once the Node is there; pods wait for it."""

    @property
    def allocatable(self) -> dict[str, str]:
        """What the Node offers to pods now."""
        return building.build_amounts(self._spec, self._counts())["allocatable"]

    def touch(self) -> None:
        """The devices have changed: write the Node soon."""
        self._changed.set()

    async def run(self, port: int) -> None:
        """Registers, with patience, then keeps the Node alive until cancelled. `port` is where logs are served."""
        self._port = port
        await self._register_patiently()
        lease_at = 0.0
        while True:
            now = time.monotonic()
            if now >= lease_at:
                await self._attempt("renew lease", self._renew)
                lease_at = now + self._pace.lease
            due = await self._attempt("write node", self._write)
            # A write that failed is tried again with the next lease: the API server is away then, or says no.
            if due and await self._wait(lease_at - time.monotonic()):
                await asyncio.sleep(self._pace.settle)
            elif not due:
                await asyncio.sleep(min(1.0, self._pace.lease))

    async def register_again(self) -> None:
        """What a kubelet does when it starts anew: the Node is made where it is gone, else taken over with 0 devices."""
        self._announce_start()
        await self._attempt("register", self._register)
        self.touch()

    def _announce_start(self) -> None:
        about, name = voices.about_node(self._spec.name), self._spec.name
        self._recorder.normal(about, "Starting", "Starting kubelet.")
        for reason in ("NodeHasSufficientMemory", "NodeHasNoDiskPressure", "NodeHasSufficientPID"):
            self._recorder.normal(about, reason, f"Node {name} status is now: {reason}")
        self._recorder.normal(about, "NodeAllocatableEnforced", "Updated Node Allocatable limit across pods")

    async def _wait(self, seconds: float) -> bool:
        """Whether the devices changed within that time."""
        try:
            async with asyncio.timeout(max(0.0, seconds)):
                await self._changed.wait()
        except TimeoutError:
            return False
        self._changed.clear()
        return True

    async def _attempt(self, what: str, action: Callable[[], Any]) -> bool:
        try:
            await action()
        except _FAILURES as error:
            self._log.warning("cannot write", extra={"what": what, "reason": str(error)})
            return False
        return True

    async def _register_patiently(self) -> None:
        self._announce_start()
        backoff = Backoff()
        while True:
            if await self._attempt("register", self._register):
                break
            await asyncio.sleep(backoff.next())
        self._recorder.normal(
            voices.about_node(self._spec.name), "NodeReady", f"Node {self._spec.name} status is now: NodeReady"
        )
        self.registered.set()

    async def _register(self) -> None:
        # Never beside a write of amounts: the older of two patches must not be the last to be remembered.
        async with self._writing:
            await self._create_or_adopt()

    async def _create_or_adopt(self) -> None:
        self._since = times.seconds_text(time.time())
        manifest = building.build_node(self._spec, self._port, self._since)
        found = await self._cluster.get(manifests.NODE, self._spec.name)
        if found is not None:
            await self._adopt(found)
            return
        self._node = await self._cluster.create(manifest)
        self._remember_written(manifest["status"])

    async def _adopt(self, found: Manifest) -> None:
        """Takes over a Node of that name: only the labels that belong to the kubelet and to node feature discovery."""
        self._node = found
        own = {
            **{key: value for key, value in self._spec.labels.items() if key.startswith(names.PREFIX_NFD)},
            **building.build_default_labels(self._spec),
        }
        have = found["metadata"].get("labels") or {}
        if missing := {key: value for key, value in own.items() if have.get(key) != value}:
            await self._cluster.patch(manifests.NODE, self._spec.name, {"metadata": {"labels": missing}})
        # Resources of plugins that are not there yet count as 0, whatever the Node said before.
        stale = {name: "0" for name in (found.get("status") or {}).get("capacity") or {} if "/" in name}
        status = building.build_status(self._spec, self._port, {}, self._since, self._since)
        for part in ("capacity", "allocatable"):
            status[part] = {**stale, **status[part]}
        await self._patch_status(status)
        self._remember_written(status)

    def _remember_written(self, status: Mapping[str, Any]) -> None:
        self._written = {part: status[part] for part in ("capacity", "allocatable")}
        self._beat_at = time.monotonic()

    async def _write(self) -> None:
        async with self._writing:
            await self._write_changes()

    async def _write_changes(self) -> None:
        amounts = building.build_amounts(self._spec, self._counts())
        changed = {part: _difference(amounts[part], self._written.get(part) or {}) for part in amounts}
        late = time.monotonic() - self._beat_at >= _STATUS_SECONDS
        if not late and not any(changed.values()):
            return
        now = times.seconds_text(time.time())
        body: dict[str, Any] = {part: values for part, values in changed.items() if values}
        # Each write carries the heartbeat, as a kubelet's does.
        body["conditions"] = building.build_conditions(self._since, now)
        await self._patch_status(body)
        self._remember_written({part: {**(self._written.get(part) or {}), **amounts[part]} for part in amounts})

    async def _patch_status(self, status: Mapping[str, Any]) -> None:
        patched = await self._cluster.patch(
            manifests.NODE, self._spec.name, {"status": status}, patch_type=PatchType.STRATEGIC, subresource="status"
        )
        if patched is None:
            # As with a real kubelet: it comes back with the next restart, not before.
            raise ClusterRefused(f'nodes "{self._spec.name}" not found', code=404)

    async def _renew(self) -> None:
        now = times.micro_text(time.time())
        lease = building.build_lease(self._node, now)
        name, namespace = lease["metadata"]["name"], lease["metadata"]["namespace"]
        if await self._cluster.patch(manifests.LEASE, name, {"spec": lease["spec"]}, namespace) is None:
            await self._cluster.create(lease)


def _difference(wanted: Mapping[str, str], written: Mapping[str, str]) -> dict[str, str]:
    return {name: amount for name, amount in wanted.items() if written.get(name) != amount}
