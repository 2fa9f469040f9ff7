"""Watches a node's GPUs: reads them, listens to them, reads them again. Run by the agent.

NVML's calls block, so all of them are made in one thread of its own, one after the other.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, TypeVar

from gpushare.agent import discovery
from gpushare.agent.health import Checks
from gpushare.agent.linking import Linking
from gpushare.agent.memory import Memory
from gpushare.agent.troubles import Moment, Reading, Troubles, find_sick
from gpushare.domain.devices import GPU, Inventory
from gpushare.domain.troubles import Trouble
from gpushare.errors import DeviceError
from gpushare.host.devices import read_driver_load
from gpushare.host.files import HostFiles
from gpushare.kube import clock
from gpushare.kube.backoff import Backoff
from gpushare.nvml.port import DriverUnavailable, Event, EventKind, GpuLost, Nvml, Recovery

if TYPE_CHECKING:
    from gpushare.labels.facts import HostFacts

T = TypeVar("T")

WAIT_SECONDS = 0.5
"""For an event; so long an agent that is told to stop may have to wait."""
READ_SECONDS = 30.0
"""Between two readings of everything, which notice a changed MIG layout, or a GPU that comes back."""
RECOVERY_SECONDS = 5.0
"""The same while something is wrong."""
SERVED_SECONDS = 5.0
"""How long what is not needed to serve waits for the first list."""
FIRST_RETRY_SECONDS = 1.0
LONGEST_RETRY_SECONDS = 30.0


class DeviceWatch:
    """Keeps `inventory` true. Calls `on_change` whenever it is another."""

    def __init__(
        self,
        nvml: Nvml,
        files: HostFiles,
        checks: Checks,
        memory: Memory,
        log: logging.Logger,
        *,
        on_change: Callable[[], None],
    ) -> None:
        """Devices that `memory` knows to be sick are so from the first reading on."""
        self.inventory: Inventory | None = None
        """None: the driver has not answered yet."""
        self.failure = ""
        """Why the driver as a whole cannot be asked; empty when it can."""
        self.linking = Linking(nvml, log)
        """How close the GPUs are to each other."""
        self.facts: HostFacts | None = None
        """What labels need to know of the host; None: not read yet."""
        self.errors: Counter[tuple[str, int]] = Counter()
        """Errors that GPUs have reported, whether they count or not, by UUID and XID."""
        self.answered = asyncio.Event()
        """Set once the driver has answered or failed for the first time."""
        self._nvml = nvml
        self._files = files
        self._checks = checks
        self._memory = memory
        self._log = log
        self._on_change = on_change
        self._troubles = Troubles(memory.state.troubles, memory.state.gpus)
        self._readable: Sequence[GPU] = ()
        self._listened: set[str] = set()
        self._puzzling: Event | None = None
        """A report about something that was not there when everything was read for the last time."""
        self._logged: Mapping[str, str] = {}
        """What is wrong with devices, as far as the log has it."""
        self._backoff = Backoff(first=FIRST_RETRY_SECONDS, most=LONGEST_RETRY_SECONDS)
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="nvml")

    @property
    def troubles(self) -> Sequence[Trouble]:
        """What is wrong with devices now."""
        return self._troubles.known

    async def run(self, served: asyncio.Event) -> None:
        """Watches for ever; ends by being cancelled, after which `close` is to be called.

        `served`: set once the kubelet has its first list, which what is only reported must not delay.
        """
        while True:
            try:
                await self._read()
                await self._complete(served)
                await self._listen()
            except DeviceError as error:
                await self._fail(error)

    async def close(self) -> None:
        """Disconnects from the driver."""
        # In the same thread, so after whatever it is doing now.
        await self._in_thread(self._nvml.stop)
        self._thread.shutdown()

    async def _read(self) -> None:
        places = self._troubles.places
        reading = await self._in_thread(lambda: self._read_now(places))
        self._backoff.reset()
        self._readable = reading.inventory.gpus
        inventory = self._troubles.read(reading, self._now(), trusts_silence=self._checks.trusts_silence)
        if self._puzzling is not None:
            event, self._puzzling = self._puzzling, None
            self._troubles.report(event, self._now())
            inventory = self._troubles.apply(inventory)
        self._tell("", inventory)

    async def _complete(self, served: asyncio.Event) -> None:
        """Reads what is not needed to serve: facts for labels, and links, which may take seconds."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(SERVED_SECONDS):
                await served.wait()
        facts = await self._in_thread(lambda: discovery.read_facts(self._files))
        if facts != self.facts:
            self.facts = facts
            self._on_change()
        if await self._in_thread(lambda: self.linking.read(self._readable)):
            self._on_change()

    def _read_now(self, places: tuple[int, ...]) -> Reading:
        """Reads everything; `places` are the GPUs for which the driver is asked what it wants done."""
        self._nvml.start()
        inventory = discovery.read_inventory(self._nvml, self._files)
        uuids = {gpu.index: gpu.uuid for gpu in inventory.gpus}
        # One that is back after a reset has forgotten who listens.
        self._listened.intersection_update(uuids.values())
        return Reading(
            inventory=inventory,
            lost=frozenset(index for index in range(self._nvml.count()) if index not in uuids and self._is_lost(index)),
            deaf={uuid: why for index, uuid in uuids.items() if (why := self._listen_to(index, uuid))},
            recoveries={
                uuids[index]: wanted for index in places if index in uuids and (wanted := self._ask(index)) is not None
            },
            driver_load=read_driver_load(self._files),
        )

    def _listen_to(self, index: int, uuid: str) -> str:
        """Why the events of a GPU cannot be had; empty where they can, and where it never has any."""
        if uuid in self._listened or self._checks.hears_nothing:
            return ""
        try:
            if not self._nvml.register_events(index):
                self._log.info("GPU reports no events", extra={"gpu": uuid})
        except DriverUnavailable:
            raise
        except DeviceError as error:
            return str(error)
        self._listened.add(uuid)
        return ""

    def _is_lost(self, index: int) -> bool:
        try:
            self._nvml.recovery(index)
        except GpuLost:
            return True
        except DriverUnavailable:
            raise
        except DeviceError:
            return False
        return False

    def _ask(self, index: int) -> Recovery | None:
        try:
            return self._nvml.recovery(index)
        except DriverUnavailable:
            raise
        except DeviceError:
            return None

    async def _listen(self) -> None:
        """Takes events until it is time to read everything again."""
        loop = asyncio.get_running_loop()
        assert self.inventory is not None
        is_well = not self.inventory.problems and not self._troubles.known
        deadline = loop.time() + (READ_SECONDS if is_well else RECOVERY_SECONDS)
        while loop.time() < deadline:
            if not self._listened:
                await asyncio.sleep(WAIT_SECONDS)
                continue
            try:
                event = await self._in_thread(lambda: self._nvml.wait_event(WAIT_SECONDS))
            except GpuLost as error:
                await self._leave_out_lost(error)
                return
            if event is None:
                continue
            if event.kind is EventKind.XID:
                self.errors[event.uuid, event.xid] += 1
            if self._checks.counts(event) and not self._see(event):
                return

    async def _leave_out_lost(self, error: GpuLost) -> None:
        """Makes room for listening anew: as long as one of them is off the bus, nothing is heard of the others."""
        if not await self._in_thread(lambda: any(self._is_lost(gpu.index) for gpu in self._readable)):
            raise error
        self._log.warning("GPU is lost: listening to the others anew", extra={"reason": str(error)})
        self._listened.clear()
        await self._in_thread(self._nvml.stop)
        await asyncio.sleep(WAIT_SECONDS)

    def _see(self, event: Event) -> bool:
        """Takes a report. False: what it is about is known only once everything has been read again."""
        self._log.warning(
            "GPU reports an error",
            extra={"gpu": event.uuid or "unknown", "xid": event.xid, "gpu_instance": event.gpu_instance},
        )
        if not event.uuid:
            # Some GPU, maybe one that has fallen off the bus: reading all of them shows which.
            return False
        if not self._troubles.concerns(event):
            # Somebody may have divided the GPU anew since it was read.
            self._puzzling = event
            return False
        assert self.inventory is not None
        self._troubles.report(event, self._now())
        self._tell("", self._troubles.apply(self.inventory))
        return True

    async def _fail(self, error: DeviceError) -> None:
        """The whole driver does not answer: everything is sick, and is tried again from the start, ever more slowly."""
        self._listened.clear()
        inventory = self.inventory
        if inventory is not None and not self._checks.trusts_silence:
            inventory = self._troubles.fail(inventory, str(error), self._now())
        self._tell(str(error), inventory)
        await self._in_thread(self._nvml.stop)
        await asyncio.sleep(self._backoff.next())

    def _tell(self, failure: str, inventory: Inventory | None) -> None:
        self._memory.remember_devices(self._troubles.gpus, self._troubles.known)
        first = not self.answered.is_set()
        self.answered.set()
        if failure != self.failure or first:
            self._log_driver(failure, inventory)
        if inventory is not None:
            self._log_devices(inventory)
        if (failure, inventory) != (self.failure, self.inventory) or first:
            self.failure, self.inventory = failure, inventory
            self._on_change()

    def _log_driver(self, failure: str, inventory: Inventory | None) -> None:
        gpus = {"gpus": len(inventory.gpus) if inventory else 0}
        if failure:
            self._log.warning("driver does not answer", extra={"reason": failure, **gpus})
        else:
            self._log.info("driver answers", extra=gpus)

    def _log_devices(self, inventory: Inventory) -> None:
        unread = {problem.path: problem.message for problem in inventory.problems}
        wrong, before = {**unread, **find_sick(inventory.gpus)}, self._logged
        for place, reason in wrong.items():
            if before.get(place) != reason:
                self._log.warning("device is not well", extra={"place": place, "reason": reason})
        for place in before.keys() - wrong.keys():
            self._log.info("device is well again", extra={"place": place, "was": before[place]})
        self._logged = wrong

    def _now(self) -> Moment:
        return Moment(text=clock.now(), seconds=asyncio.get_running_loop().time())

    async def _in_thread(self, function: Callable[[], T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._thread, function)
