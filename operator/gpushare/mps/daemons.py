"""Brings the MPS control daemons of a machine to what they should be, by the difference. Used by `running`.

What is begun is remembered on the host before it begins: whoever comes after a sudden end may find GPUs that only an MPS
server can use, and has to know that this was our doing.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Collection, Mapping
from dataclasses import dataclass

from gpushare.errors import ProgramFailed
from gpushare.host import mps
from gpushare.host.mps import MpsMachine
from gpushare.host.remembering import ValueFile
from gpushare.sharing.mps import MpsDaemon, build_changes

SILENCES = 3
"""So many looks in a row without an answer make a daemon count as dead. One that is only slow has clients to lose."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Begun:
    """What is remembered."""

    daemons: tuple[MpsDaemon, ...] = ()
    """Those that may be there, or may have left something behind."""
    exclusive: tuple[str, ...] = ()
    """UUIDs of the GPUs whose compute mode was changed and not yet restored."""


class Daemons:
    """The daemons of one machine. Calls must not overlap."""

    def __init__(self, machine: MpsMachine, memory: ValueFile[Begun], log: logging.Logger) -> None:
        """Starts from what is remembered."""
        self.troubles: dict[str, str] = {}
        """What went wrong in the last `apply`: by resource, or by UUID of a GPU."""
        self._machine = machine
        self._memory = memory
        self._log = log
        remembered = memory.read() or Begun()
        self._begun = {daemon.resource: daemon for daemon in remembered.daemons}
        self._exclusive = set(remembered.exclusive)
        self._running: set[str] = set()
        """Resources of the daemons that answer, as far as is known."""
        self._silences: dict[str, int] = {}

    @property
    def begun(self) -> Mapping[str, MpsDaemon]:
        """Every daemon that may be there, by resource."""
        return self._begun

    @property
    def running(self) -> Collection[str]:
        """Resources whose daemon runs."""
        return self._running

    async def apply(self, wanted: Mapping[str, MpsDaemon], present: Collection[str]) -> None:
        """Ends, finds again and begins daemons; one that runs as it is wanted is not touched.

        Args:
            wanted: by resource.
            present: UUIDs of the GPUs that the machine has.
        """
        self.troubles = {}
        for daemon in build_changes(self._begun.values(), wanted).end:
            await self._try(self._end, daemon)
        for name, daemon in sorted(wanted.items()):
            if name not in self._begun:
                await self._try(self._begin, daemon)
            # A daemon that could not be ended keeps the new one of its resource from beginning.
            elif name not in self._running and self._begun[name] == daemon:
                await self._try(self._find_again, daemon)
        gone = self._exclusive - set(present)
        await self._release(gone.union(*(daemon.gpus for daemon in self._begun.values())))
        self._forget(gone)
        self._machine.mark_ready(ready=wanted.keys() <= self._running)

    async def look(self) -> bool:
        """Asks each running daemon whether it lives. False: one does not, and the next `apply` begins it anew."""
        before = len(self._running)
        for name in sorted(self._running):
            await self._look_at(self._begun[name])
        return len(self._running) == before

    async def end_all(self) -> None:
        """Ends every daemon, and gives the GPUs back to everybody."""
        self._machine.mark_ready(ready=False)
        await asyncio.gather(*(self._try(self._end, daemon) for daemon in tuple(self._begun.values())))
        await self._release(())

    async def _try(self, step: Callable[[MpsDaemon], Awaitable[None]], daemon: MpsDaemon) -> None:
        """One that fails must not keep the others from anything."""
        try:
            await step(daemon)
        except ProgramFailed as error:
            self.troubles[daemon.resource] = str(error)
            self._log.warning("MPS daemon in trouble", extra={"resource": daemon.resource, "reason": str(error)})

    async def _begin(self, daemon: MpsDaemon) -> None:
        self._begun[daemon.resource] = daemon
        self._exclusive |= set(daemon.gpus)
        self._remember()
        failures = await self._set_modes(daemon.gpus, mps.EXCLUSIVE)
        # One lost GPU must not keep the others from being shared; it is not given out anyway.
        if failures and len(failures) == len(daemon.gpus):
            raise ProgramFailed(next(iter(failures.values())))
        await self._machine.start(daemon.resource)
        await self._set_limits(daemon)
        self._machine.mark_started(daemon.resource, started=True)
        self._running.add(daemon.resource)
        self._log.info(
            "MPS daemon started",
            extra={
                "resource": daemon.resource,
                "gpus": len(daemon.gpus),
                "thread_percentage": daemon.thread_percentage,
                "memory_mib": sorted({limit.mib for limit in daemon.memory_limits}),
            },
        )

    async def _set_limits(self, daemon: MpsDaemon) -> None:
        for limit in daemon.memory_limits:
            command = f"set_default_device_pinned_mem_limit {limit.gpu_index} {limit.mib}M"
            await self._machine.tell(daemon.resource, command)
        # Last: a daemon that is found again with this percentage has everything else as well.
        command = f"set_default_active_thread_percentage {daemon.thread_percentage}"
        await self._machine.tell(daemon.resource, command)

    async def _find_again(self, daemon: MpsDaemon) -> None:
        """A daemon of an earlier process, or one that got stuck half way: kept when it is as it should be, for its clients."""
        try:
            percentage = await self._machine.ask_percentage(daemon.resource)
        except ProgramFailed:
            percentage = None
        if percentage == daemon.thread_percentage:
            self._running.add(daemon.resource)
            self._log.info("MPS daemon found running", extra={"resource": daemon.resource})
            return
        await self._end(daemon)
        await self._begin(daemon)

    async def _end(self, daemon: MpsDaemon) -> None:
        self._running.discard(daemon.resource)
        self._silences.pop(daemon.resource, None)
        await self._machine.quit(daemon.resource)
        self._machine.mark_started(daemon.resource, started=False)
        del self._begun[daemon.resource]
        self._remember()
        self._log.info("MPS daemon ended", extra={"resource": daemon.resource})

    async def _look_at(self, daemon: MpsDaemon) -> None:
        name = daemon.resource
        try:
            percentage = await self._machine.ask_percentage(name)
        except ProgramFailed as error:
            self._silences[name] = self._silences.get(name, 0) + 1
            if not error.hangs or self._silences[name] >= SILENCES:
                self._log.warning("MPS daemon is gone", extra={"resource": name, "reason": str(error)})
                self._running.discard(name)
            return
        self._silences.pop(name, None)
        if percentage not in {None, daemon.thread_percentage}:
            self._log.warning("MPS daemon has other limits", extra={"resource": name, "percentage": percentage})
            await self._try(self._set_limits, daemon)

    async def _release(self, kept: Collection[str]) -> None:
        """Restores the compute mode of GPUs that no daemon needs any more. What fails is tried again with the next pass."""
        released = sorted(self._exclusive.difference(kept))
        failures = await self._set_modes(released, mps.SHARED)
        self.troubles |= failures
        self._forget(set(released) - failures.keys())

    def _forget(self, uuids: Collection[str]) -> None:
        if not self._exclusive.isdisjoint(uuids):
            self._exclusive.difference_update(uuids)
            self._remember()

    async def _set_modes(self, uuids: Collection[str], mode: str) -> dict[str, str]:
        """All at once, since each call may take seconds. Returns what failed, by UUID."""
        results = await asyncio.gather(
            *(self._machine.set_compute_mode(uuid, mode) for uuid in uuids), return_exceptions=True
        )
        failures: dict[str, str] = {}
        for uuid, result in zip(uuids, results, strict=True):
            if isinstance(result, ProgramFailed):
                failures[uuid] = f"compute mode {mode} cannot be set: {result}"
                self._log.warning("compute mode not set", extra={"gpu": uuid, "mode": mode, "reason": str(result)})
            elif result is not None:
                raise result
        return failures

    def _remember(self) -> None:
        self._memory.write(
            Begun(
                daemons=tuple(self._begun[name] for name in sorted(self._begun)),
                exclusive=tuple(sorted(self._exclusive)),
            )
        )
