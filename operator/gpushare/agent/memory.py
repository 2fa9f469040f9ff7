"""What an agent remembers over its restarts. Its parts change it; each change is on the disk a moment later."""

from __future__ import annotations

import asyncio
from concurrent.futures import Executor
from dataclasses import replace

from gpushare.domain.devices import GPU
from gpushare.domain.troubles import Trouble
from gpushare.host.state import LastGood, State, StateFile


class Memory:
    """The state of an agent, and its file."""

    def __init__(self, file: StateFile, executor: Executor) -> None:
        """Begins with what the file says. Blocks for a moment."""
        self._file = file
        self._executor = executor
        self._writing: asyncio.Task[None] | None = None
        self.state = file.read()

    def remember_serving(self, last_good: LastGood | None, resources: tuple[str, ...]) -> None:
        """What is in force, and every resource that was ever registered."""
        self._become(replace(self.state, last_good=last_good, resources=resources))

    def remember_devices(self, gpus: tuple[GPU, ...], troubles: tuple[Trouble, ...]) -> None:
        """The devices as last read, and what is wrong with them."""
        self._become(replace(self.state, gpus=gpus, troubles=troubles))

    async def close(self) -> None:
        """Waits until everything is written down."""
        if self._writing is not None:
            await self._writing

    def _become(self, state: State) -> None:
        """Writes beside whatever is going on: an agent that is killed just after must find it."""
        if state == self.state and not self._file.is_behind:
            return
        self.state = state
        before = self._writing

        async def write() -> None:
            # One after the other, or an older one could win.
            if before is not None:
                await before
            await asyncio.get_running_loop().run_in_executor(self._executor, self._file.write, state)

        self._writing = asyncio.create_task(write())
