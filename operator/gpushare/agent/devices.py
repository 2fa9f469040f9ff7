"""Watches a node's GPUs: reads them, listens to them, reads them again. Run by the agent.

NVML's calls block, so all of them are made in one thread of its own, one after the other.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from gpushare.agent import clock, discovery, health
from gpushare.domain.devices import Inventory
from gpushare.errors import DeviceError
from gpushare.host.files import HostFiles
from gpushare.labels.facts import HostFacts
from gpushare.nvml.port import Event, Nvml

T = TypeVar("T")

WAIT_SECONDS = 0.5
"""For an event; so long an agent that is told to stop may have to wait."""
READ_SECONDS = 30.0
"""Between two readings of everything, which notice a changed MIG layout, or a GPU that comes back."""
RECOVERY_SECONDS = 5.0
"""The same while something cannot be read."""
FIRST_RETRY_SECONDS = 1.0
LONGEST_RETRY_SECONDS = 30.0


class DeviceWatch:
    """Keeps `inventory` true. Calls `on_change` whenever it is another."""

    def __init__(
        self,
        nvml: Nvml,
        files: HostFiles,
        checks: health.XidFilter,
        log: logging.Logger,
        *,
        on_change: Callable[[], None],
    ) -> None:
        self.inventory: Inventory | None = None
        """None: the driver has not answered yet."""
        self.failure = ""
        """Why the driver as a whole cannot be asked; empty when it can."""
        self.facts = HostFacts()
        self.answered = asyncio.Event()
        """Set once the driver has answered or failed for the first time."""
        self._nvml = nvml
        self._files = files
        self._checks = checks
        self._log = log
        self._on_change = on_change
        self._marks: list[health.Mark] = []
        self._listened: set[str] = set()
        self._retry_seconds = FIRST_RETRY_SECONDS
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="nvml")

    async def run(self) -> None:
        """Watches for ever; ends by being cancelled, after which `close` is to be called."""
        while True:
            try:
                await self._read()
                await self._listen()
            except DeviceError as error:
                await self._fail(error)

    async def close(self) -> None:
        """Disconnects from the driver."""
        # In the same thread, so after whatever it is doing now.
        await self._in_thread(self._nvml.stop)
        self._thread.shutdown()

    async def _read(self) -> None:
        read, facts = await self._in_thread(self._read_now)
        self._retry_seconds = FIRST_RETRY_SECONDS
        now = clock.now()
        self.facts = facts
        self._tell("", health.apply_marks(health.keep_lost(self.inventory, read, now), self._marks))

    def _read_now(self) -> tuple[Inventory, HostFacts]:
        self._nvml.start()
        inventory = discovery.read_inventory(self._nvml, self._files)
        for gpu in inventory.gpus:
            if gpu.uuid not in self._listened:
                self._listen_to(gpu.index, gpu.uuid)
        return inventory, discovery.read_facts(self._files)

    def _listen_to(self, index: int, uuid: str) -> None:
        self._listened.add(uuid)
        try:
            if not self._nvml.register_events(index):
                self._log.info("GPU reports no events", extra={"gpu": uuid})
        except DeviceError as error:
            # Read again soon, and then registered again.
            self._listened.discard(uuid)
            self._log.warning("GPU cannot be listened to", extra={"gpu": uuid, "reason": str(error)})

    async def _listen(self) -> None:
        """Takes events until it is time to read everything again."""
        loop = asyncio.get_running_loop()
        assert self.inventory is not None
        deadline = loop.time() + (RECOVERY_SECONDS if self.inventory.problems else READ_SECONDS)
        while loop.time() < deadline:
            if not self._listened:
                await asyncio.sleep(WAIT_SECONDS)
                continue
            event = await self._in_thread(lambda: self._nvml.wait_event(WAIT_SECONDS))
            if event is not None and self._checks.counts(event):
                self._see(event)
                if not event.uuid:
                    # Some GPU, maybe one that has fallen off the bus: reading all of them shows which.
                    return

    def _see(self, event: Event) -> None:
        self._log.warning(
            "GPU reports an error",
            extra={"gpu": event.uuid or "unknown", "xid": event.xid, "gpu_instance": event.gpu_instance},
        )
        if event.uuid and self.inventory is not None:
            mark = health.Mark.of(event, clock.now())
            marked = health.apply_marks(self.inventory, [mark])
            if marked != self.inventory:  # else it is sick already, or not here
                self._marks.append(mark)
                self._tell("", marked)

    async def _fail(self, error: DeviceError) -> None:
        """The whole driver does not answer: everything is sick, and is tried again from the start, ever more slowly."""
        self._listened.clear()
        lost = health.all_lost(self.inventory, str(error), clock.now()) if self.inventory is not None else None
        self._tell(str(error), lost)
        await self._in_thread(self._nvml.stop)
        await asyncio.sleep(self._retry_seconds)
        self._retry_seconds = min(self._retry_seconds * 2, LONGEST_RETRY_SECONDS)

    def _tell(self, failure: str, inventory: Inventory | None) -> None:
        first = not self.answered.is_set()
        self.answered.set()
        if failure != self.failure or first:
            self._log.log(
                logging.WARNING if failure else logging.INFO,
                "driver does not answer" if failure else "driver answers",
                extra={"reason": failure, "gpus": len(inventory.gpus) if inventory else 0},
            )
        if (failure, inventory) != (self.failure, self.inventory) or first:
            self.failure, self.inventory = failure, inventory
            self._on_change()

    async def _in_thread(self, function: Callable[[], T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._thread, function)
