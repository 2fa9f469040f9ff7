"""A small kubelet for tests: takes registrations, follows every plugin, and remembers what it was told."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from pathlib import Path

from gpushare.kubelet.server import PluginClient, RegistrationServer
from gpushare.kubelet.values import CallFailed, Device, Registration

WAIT_SECONDS = 60.0


class Kubelet:
    """Follows each plugin in a thread of its own. `until` waits for what a test expects."""

    def __init__(self, directory: Path) -> None:
        directory.mkdir(parents=True, exist_ok=True)
        self.directory = directory
        self.registrations: list[Registration] = []
        self.lists: dict[str, list[tuple[Device, ...]]] = {}
        self.ended: list[str] = []
        """Resources whose stream ended, in order."""
        self.clients: dict[str, PluginClient] = {}
        self._changed = threading.Condition()
        self._threads: list[threading.Thread] = []
        self._server: RegistrationServer | None = None

    @property
    def socket(self) -> Path:
        return self.directory / "kubelet.sock"

    def start(self) -> Kubelet:
        """Like the real one: first removes whatever lies in the directory."""
        for path in self.directory.iterdir():
            path.unlink()
        self._server = RegistrationServer(self.socket, self._register)
        self._server.start()
        return self

    def stop(self) -> None:
        if self._server is not None:
            self._server.stop()
            self._server = None
        with self._changed:
            clients, threads = list(self.clients.values()), list(self._threads)
            self.clients.clear()
        for client in clients:
            client.close()
        for thread in threads:
            thread.join(WAIT_SECONDS)

    def restart(self) -> None:
        self.stop()
        self.start()

    def ids(self, resource: str) -> list[str]:
        """Healthy ids of the last list of a resource."""
        lists = self.lists.get(resource, [])
        return [device.id for device in lists[-1] if device.healthy] if lists else []

    def total(self, resource: str) -> int:
        """Devices of the last list; -1 before the first."""
        lists = self.lists.get(resource, [])
        return len(lists[-1]) if lists else -1

    def registered(self) -> list[str]:
        return [registration.resource for registration in self.registrations]

    async def until(self, expected: Callable[[], bool]) -> None:
        """Waits until something is so; fails when it does not come to be."""
        assert await asyncio.to_thread(self._wait, expected), f"not seen: {self.registered()} {self.lists}"

    def notify(self) -> None:
        with self._changed:
            self._changed.notify_all()

    def _wait(self, expected: Callable[[], bool]) -> bool:
        with self._changed:
            return self._changed.wait_for(expected, WAIT_SECONDS)

    def _register(self, registration: Registration) -> None:
        client = PluginClient(self.directory / registration.endpoint)
        client.options()
        thread = threading.Thread(target=self._follow, args=(registration.resource, client))
        with self._changed:
            self.registrations.append(registration)
            old = self.clients.pop(registration.resource, None)
            self.clients[registration.resource] = client
            self._threads.append(thread)
            self._changed.notify_all()
        if old is not None:
            old.close()
        thread.start()

    def _follow(self, resource: str, client: PluginClient) -> None:
        try:
            for devices in client.list_and_watch():
                with self._changed:
                    self.lists.setdefault(resource, []).append(devices)
                    self._changed.notify_all()
        except CallFailed:
            pass  # the plugin went without a word
        with self._changed:
            self.ended.append(resource)
            self._changed.notify_all()
