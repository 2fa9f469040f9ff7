"""Which GPUs the machine has, read now and then. Run by `running`.

Health is the agent's matter: a GPU that cannot be read for the moment still belongs to its daemon, whose other clients would
pay for a restart.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from gpushare.agent import discovery
from gpushare.domain.devices import Inventory
from gpushare.errors import DeviceError
from gpushare.host.files import HostFiles
from gpushare.kube.backoff import Backoff
from gpushare.nvml.port import Nvml

T = TypeVar("T")

READ_SECONDS = 30.0
FIRST_RETRY_SECONDS = 1.0


class DevicePoll:
    """Keeps `inventory` true."""

    def __init__(self, nvml: Nvml, files: HostFiles, log: logging.Logger, *, on_change: Callable[[], None]) -> None:
        """Calls `on_change` whenever the inventory is another."""
        self.inventory: Inventory | None = None
        """None: the driver has not answered yet. As last known while it does not."""
        self.failure = ""
        """Why the driver does not answer; empty when it does."""
        self.answered = asyncio.Event()
        """Set once it has answered or failed for the first time."""
        self._nvml = nvml
        self._files = files
        self._log = log
        self._on_change = on_change
        # NVML's calls block, so they are made in a thread of their own.
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="nvml")

    async def run(self) -> None:
        """Reads for ever; ends by being cancelled, after which `close` is to be called."""
        backoff = Backoff(first=FIRST_RETRY_SECONDS, most=READ_SECONDS)
        while True:
            try:
                read = await self._in_thread(self._read)
            except DeviceError as error:
                self._fail(str(error))
                await self._in_thread(self._nvml.stop)
                await asyncio.sleep(backoff.next())
                continue
            backoff.reset()
            self._see(discovery.with_lost(self.inventory, read))
            await asyncio.sleep(READ_SECONDS)

    async def close(self) -> None:
        """Disconnects from the driver."""
        # In the same thread, so after whatever it is doing now.
        await self._in_thread(self._nvml.stop)
        self._thread.shutdown()

    def _read(self) -> Inventory:
        self._nvml.start()
        return discovery.read_inventory(self._nvml, self._files)

    def _see(self, inventory: Inventory) -> None:
        if self.failure or self.inventory is None:
            self._log.info("driver answers", extra={"gpus": len(inventory.gpus)})
        self.failure = ""
        if inventory != self.inventory:
            self.inventory = inventory
            self._on_change()
        self.answered.set()

    def _fail(self, reason: str) -> None:
        if reason != self.failure:
            self._log.warning("driver does not answer", extra={"reason": reason})
        self.failure = reason
        self.answered.set()

    async def _in_thread(self, function: Callable[[], T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._thread, function)
