"""Notices what changes on the host while its GPUs stay the same: device nodes that come late, CDI files that go.

Run by the agent.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import Executor
from typing import Final

from gpushare.agent import settings
from gpushare.agent.deciding import Decision
from gpushare.agent.describing import Describer
from gpushare.agent.holding import HolderWatch
from gpushare.host.files import HostFiles

LOOK_SECONDS = 10.0
_LOOKS_BEFORE_CLEARING: Final = 2
"""A container that was given a device a moment ago may not stand in the kubelet's list yet."""


class HostWatch:
    """Looks now and then, and asks for a pass where the last one would turn out differently now."""

    def __init__(
        self,
        files: HostFiles,
        describer: Describer,
        holders: HolderWatch,
        executor: Executor,
        *,
        on_change: Callable[[], None],
    ) -> None:
        self._files = files
        self._describer = describer
        self._holders = holders
        self._executor = executor
        self._on_change = on_change
        self._loop = asyncio.get_running_loop()
        self._free_looks = 0

    async def run(self, current: Callable[[], Decision | None]) -> None:
        """Looks at what `current` gives, for ever; ends by being cancelled."""
        while True:
            await asyncio.sleep(LOOK_SECONDS)
            decision = current()
            if decision is None:
                continue
            if not await self._loop.run_in_executor(self._executor, self._holds, decision):
                self._on_change()
            await self._clear_unless_needed(decision)

    def _holds(self, decision: Decision) -> bool:
        if decision.refusal:
            # What it was refused for may be there now, such as an IMEX channel.
            return False
        now, then = settings.read_response_options(decision.settings, self._files), decision.responses
        return self._describer.is_settled() and (now.control_devices, now.dev_root, now.imex_channels) == (
            then.control_devices,
            then.dev_root,
            then.imex_channels,
        )

    async def _clear_unless_needed(self, decision: Decision) -> None:
        if not await self._loop.run_in_executor(self._executor, self._describer.has_leftovers):
            self._free_looks = 0
            return
        holders = await self._holders.ask()
        is_free = holders is not None and not any(holder.resource in decision.pools for holder in holders)
        self._free_looks = self._free_looks + 1 if is_free else 0
        if self._free_looks >= _LOOKS_BEFORE_CLEARING:
            await self._loop.run_in_executor(self._executor, self._describer.clear)
