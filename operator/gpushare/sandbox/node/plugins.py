"""The device manager at work: takes registrations, follows the lists of plugins, and asks them when pods come.

What is decided, `devices` decides; here are the sockets and threads of a real kubelet's folder. Called by the node.
"""

from __future__ import annotations

import asyncio
import json
import logging
import re
import threading
from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

from gpushare.domain.manifests import Manifest
from gpushare.errors import KubeletError
from gpushare.kubelet import sockets, values
from gpushare.kubelet.server import PluginClient, PodResourcesServer, RegistrationServer
from gpushare.kubelet.values import CallFailed, ContainerDevices, Device, PreferenceRequest, Registration
from gpushare.sandbox.node import requests
from gpushare.sandbox.node.devices import AllocationRefused, Choice, Counts, DeviceBook
from gpushare.sharing.responses import ContainerAnswer

FOLDER = "var/lib/kubelet/device-plugins"
POD_RESOURCES = "var/lib/kubelet/pod-resources/kubelet.sock"
CHECKPOINT = "kubelet_internal_checkpoint"
_RESOURCE = re.compile(r"[a-z0-9]([-a-z0-9.]*[a-z0-9])?/[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?")


class Plugins:
    """All device plugins of one node. Lives in one event loop; only what says so is called from other threads."""

    def __init__(self, root: Path, grace: float, on_change: Callable[[], None], log: logging.Logger) -> None:
        """Calls `on_change` whenever `counts` may have changed. `grace`: see `DeviceBook`."""
        self._folder = root / FOLDER
        self._pod_resources = root / POD_RESOURCES
        self._grace = grace
        self._on_change = on_change
        self._log = log
        self._loop = asyncio.get_running_loop()
        self._book = DeviceBook(grace=grace)
        self._clients: dict[str, PluginClient] = {}
        self._readers: set[threading.Thread] = set()
        self._servers: tuple[RegistrationServer, PodResourcesServer] | None = None
        self._names: dict[str, tuple[str, str]] = {}
        self._passing: dict[str, frozenset[str]] = {}
        """Containers of each pod that end before the others begin; pod resources do not tell of them."""
        # Both for other threads, and so never changed but replaced.
        self._holders: tuple[ContainerDevices, ...] = ()
        self._allocatable: dict[str, tuple[str, ...]] = {}
        self._admission = asyncio.Lock()

    async def start(self) -> None:
        """Clears the folder, as a kubelet does at each start, reads what had been given out, and listens.

        Raises:
            KubeletError: a socket cannot be bound.
        """
        self._folder.mkdir(parents=True, exist_ok=True)
        self._pod_resources.parent.mkdir(parents=True, exist_ok=True)
        for path in self._folder.iterdir():
            # Plugins take the loss of their socket as the sign that they have to register again.
            if path.name != CHECKPOINT and not path.is_dir():
                path.unlink(missing_ok=True)
        self._book = self._restored()
        self._servers = (
            RegistrationServer(self._folder / "kubelet.sock", self._check_registration),
            PodResourcesServer(self._pod_resources, lambda: self._holders, lambda: self._allocatable),
        )
        for server in self._servers:
            await asyncio.to_thread(server.start)
        self._changed()

    async def stop(self) -> None:
        """Closes all sockets and ends all threads. Safe to call twice."""
        servers, self._servers = self._servers, None
        for server in servers or ():
            await asyncio.to_thread(server.stop)
        clients, self._clients = self._clients, {}
        for client in clients.values():
            client.close()
        for reader in tuple(self._readers):
            await asyncio.to_thread(reader.join)
        self._readers.clear()

    def counts(self) -> dict[str, Counts]:
        """Devices by resource, as the Node should show them."""
        return self._book.counts()

    def serves(self, resource: str) -> bool:
        """Whether requests for this resource are the device manager's business."""
        return self._book.serves(resource)

    async def allocate(self, pod: Manifest) -> dict[str, ContainerAnswer]:
        """Gives devices to every container of a pod; answers by container name. One pod after another.

        Raises:
            AllocationRefused: some container cannot have what it asks for; then none of them has anything.
        """
        uid = pod["metadata"]["uid"]
        async with self._admission:
            self._names[uid] = pod["metadata"]["namespace"], pod["metadata"]["name"]
            self._passing[uid] = frozenset(each["name"] for each, is_init in requests.containers_of(pod) if is_init)
            try:
                return await self._allocate(pod, uid)
            except AllocationRefused:
                self.release(uid)
                raise
            finally:
                self._keep()

    def release(self, pod_uid: str) -> None:
        """Takes back what a pod held that has ended."""
        self._names.pop(pod_uid, None)
        self._passing.pop(pod_uid, None)
        if self._book.release(pod_uid):
            self._keep()

    async def _allocate(self, pod: Manifest, uid: str) -> dict[str, ContainerAnswer]:
        answers: dict[str, ContainerAnswer] = {}
        reusable: dict[str, set[str]] = {}
        for container, is_init in requests.containers_of(pod):
            answer = ContainerAnswer()
            for resource, size in requests.limits_of(container).items():
                if not self.serves(resource):
                    continue
                choice = self._book.request(uid, container["name"], resource, size, reusable.get(resource, ()))
                if choice is None:
                    continue
                ids = await self._choose(choice)
                answer = _merged(answer, await self._ask(resource, ids))
                self._book.commit(uid, container["name"], resource, ids)
                # What a finished init container held goes to the next container; what a running one holds does not.
                kept = reusable.setdefault(resource, set())
                kept.update(ids) if is_init else kept.difference_update(ids)
            answers[container["name"]] = answer
        return answers

    async def _choose(self, choice: Choice) -> tuple[str, ...]:
        client = self._clients.get(choice.resource)
        if not choice.asks_plugin or client is None:
            return choice.take()
        request = PreferenceRequest(
            available=tuple(sorted(choice.available)),
            must_include=tuple(sorted(choice.must_include)),
            size=choice.size,
        )
        try:
            answers = await asyncio.to_thread(client.preferred, [request])
        except CallFailed as failure:
            raise AllocationRefused(
                f"device plugin GetPreferredAllocation rpc failed with err: {_rpc_text(failure)}"
            ) from failure
        return choice.take(answers[0] if answers else ())

    async def _ask(self, resource: str, ids: tuple[str, ...]) -> ContainerAnswer:
        client = self._clients.get(resource)
        if client is None:
            raise AllocationRefused(f"unknown Device Plugin {resource}")
        try:
            answers = await asyncio.to_thread(client.allocate, [ids])
        except CallFailed as failure:
            raise AllocationRefused(_rpc_text(failure)) from failure
        if not answers:
            raise AllocationRefused("no containers return in allocation response &AllocateResponse{}")
        return answers[0]

    def _check_registration(self, registration: Registration) -> None:
        """Called in a thread of the registration server."""
        if registration.version != values.VERSION:
            raise KubeletError(
                f'requested API version "{registration.version}" is not supported by kubelet. '
                f'Supported versions are ["{values.VERSION}"]'
            )
        if not _RESOURCE.fullmatch(registration.resource):
            raise KubeletError(f'the ResourceName "{registration.resource}" is invalid')
        socket = self._folder / registration.endpoint
        if not sockets.is_alive(socket):
            raise KubeletError(f"failed to dial device plugin with socketPath {socket}")
        self._post(self._connect, registration)

    def _connect(self, registration: Registration) -> None:
        if self._servers is None:
            return
        resource = registration.resource
        self._log.info("device plugin registered", extra={"resource": resource, "endpoint": registration.endpoint})
        generation = self._book.register(resource, prefers=registration.options.preferred_allocation)
        if before := self._clients.pop(resource, None):
            before.close()
        client = self._clients[resource] = PluginClient(self._folder / registration.endpoint)
        # A thread, since the stream blocks for as long as the plugin lives; it sleeps but for changes.
        reader = threading.Thread(
            target=self._read, args=(client, resource, generation), name=f"devices of {resource}", daemon=True
        )
        self._readers.add(reader)
        reader.start()
        self._changed()

    def _read(self, client: PluginClient, resource: str, generation: int) -> None:
        """Runs in the thread of one stream."""
        try:
            for devices in client.list_and_watch():
                self._post(self._announce, resource, generation, devices)
        except CallFailed as failure:
            self._log.info("device plugin gone", extra={"resource": resource, "reason": str(failure)})
        self._post(self._disconnect, resource, generation, threading.current_thread())

    def _announce(self, resource: str, generation: int, devices: Iterable[Device]) -> None:
        if self._book.announce(resource, generation, {device.id: device.healthy for device in devices}):
            self._changed()

    def _disconnect(self, resource: str, generation: int, reader: threading.Thread) -> None:
        self._readers.discard(reader)
        if self._servers is not None and self._book.disconnect(resource, generation, self._loop.time()):
            if client := self._clients.pop(resource, None):
                client.close()
            self._loop.call_later(self._grace, self._expire)
            self._changed()

    def _expire(self) -> None:
        if self._servers is not None and self._book.expire(self._loop.time()):
            self._changed()

    def _post(self, call: Callable[..., None], *args: Any) -> None:
        """Has the event loop do something, from another thread."""
        try:
            self._loop.call_soon_threadsafe(call, *args)
        except RuntimeError:
            self._log.debug("event loop has ended")

    def _changed(self) -> None:
        self._keep()
        self._on_change()

    def _keep(self) -> None:
        """Writes the checkpoint and shows the holders to other threads."""
        self._holders = tuple(
            ContainerDevices(
                namespace=self._names[holding.pod_uid][0],
                pod=self._names[holding.pod_uid][1],
                container=holding.container,
                resource=holding.resource,
                ids=holding.ids,
            )
            for holding in self._book.holdings()
            if holding.pod_uid in self._names and holding.container not in self._passing[holding.pod_uid]
        )
        self._allocatable = self._book.allocatable()
        fresh = self._folder / f".{CHECKPOINT}"
        fresh.write_text(json.dumps(self._book.to_json()))
        fresh.replace(self._folder / CHECKPOINT)

    def _restored(self) -> DeviceBook:
        try:
            checkpoint = json.loads((self._folder / CHECKPOINT).read_text())
        except FileNotFoundError:
            return DeviceBook(grace=self._grace)
        self._loop.call_later(self._grace, self._expire)
        return DeviceBook.from_json(checkpoint, self._loop.time(), self._grace)


def _rpc_text(failure: CallFailed) -> str:
    """An error of a call as Go's gRPC prints it, which is what people know: `rpc error: code = Unknown desc = ...`."""
    code = "".join(word.capitalize() for word in failure.code.split("_"))
    return f"rpc error: code = {code} desc = {failure.text}"


def _merged(first: ContainerAnswer, second: ContainerAnswer) -> ContainerAnswer:
    """What a container gets that has devices of two resources; of equal variables the later one counts."""
    return replace(
        first,
        envs={**first.envs, **second.envs},
        mounts=first.mounts + second.mounts,
        devices=first.devices + second.devices,
        annotations={**first.annotations, **second.annotations},
        cdi_devices=first.cdi_devices + second.cdi_devices,
    )
