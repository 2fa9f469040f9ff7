"""Whether the MPS daemons run without which shares are of no use. Asked by the agent before it offers such shares.

The daemon itself is asked, by NVIDIA's control program over its pipe; a file that says that it is ready proves nothing.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Final

from gpushare.domain.pools import Pool
from gpushare.errors import ProgramFailed
from gpushare.host.mps import MpsMachine
from gpushare.kube.backoff import Backoff
from gpushare.sharing.mps import needs_daemon, thread_percentage

FIRST_ANSWER_SECONDS: Final = 1.0
"""How long a pass waits for a daemon that it has not asked before; nothing else of the node waits longer for it."""
LOOK_SECONDS: Final = 10.0
"""Between two questions while all daemons answer."""
FIRST_RETRY_SECONDS: Final = 0.25
LONGEST_RETRY_SECONDS: Final = 15.0
SILENCES: Final = 3
"""So many questions in a row without an answer make a daemon that did answer count as gone; a no does so at once."""


class MpsReadiness:
    """Keeps `reasons` true."""

    def __init__(self, machine: MpsMachine, log: logging.Logger, *, on_change: Callable[[], None]) -> None:
        """Calls `on_change` when a daemon has begun or ceased to answer."""
        self.reasons: dict[str, str] = {}
        """Why the shares of a resource are not offered; empty where its daemon runs. Only resources that need one."""
        self._machine = machine
        self._log = log
        self._on_change = on_change
        self._percentages: dict[str, int] = {}
        self._silences: dict[str, int] = {}
        self._wanted = asyncio.Event()
        """Set when another set of daemons is needed."""

    async def offerable(self, pools: Mapping[str, Pool]) -> Mapping[str, Pool]:
        """The pools without the shares whose daemon does not run; whole devices among them stay."""
        percentages = {name: thread_percentage(pool) for name, pool in pools.items() if needs_daemon(pool)}
        if percentages != self._percentages:
            await self._want(percentages)
        return {name: _without_shares(pool) if self.reasons.get(name) else pool for name, pool in pools.items()}

    async def run(self) -> None:
        """Asks again and again: often while a daemon is missing, else now and then. Never ends."""
        backoff = Backoff(first=FIRST_RETRY_SECONDS, most=LONGEST_RETRY_SECONDS)
        while True:
            missing = any(self.reasons.values())
            if not missing:
                backoff.reset()
            pause = backoff.next() if missing else LOOK_SECONDS if self._percentages else None
            self._wanted.clear()
            try:
                async with asyncio.timeout(pause):
                    await self._wanted.wait()
                    backoff.reset()
            except TimeoutError:
                await self._look()

    async def _want(self, percentages: Mapping[str, int]) -> None:
        # A daemon that is to have other limits counts as one that was never asked.
        fresh = [name for name, percentage in percentages.items() if self._percentages.get(name) != percentage]
        self._percentages = dict(percentages)
        self.reasons = {name: self.reasons.get(name, "") for name in percentages if name not in fresh}
        self.reasons |= dict.fromkeys(fresh, "its MPS daemon has not answered yet")
        self._silences = {}
        asking = [asyncio.create_task(self._ask(name, percentages[name])) for name in fresh]
        try:
            if asking:
                await asyncio.wait(asking, timeout=FIRST_ANSWER_SECONDS)
        finally:
            # Not waited for: a program that the kernel does not let go would hold up the node.
            for task in asking:
                task.cancel()
        self._wanted.set()

    async def _look(self) -> None:
        before = {name for name, reason in self.reasons.items() if reason}
        await asyncio.gather(*(self._ask(name, percentage) for name, percentage in self._percentages.items()))
        if before != {name for name, reason in self.reasons.items() if reason}:
            self._on_change()

    async def _ask(self, name: str, wanted: int) -> None:
        silences, reason = 0, ""
        try:
            found = await self._machine.ask_percentage(name)
            if found is not None and found != wanted:
                reason = f"its MPS daemon still gives each client {found:g} % of the threads, not {wanted} %"
        except ProgramFailed as error:
            silences = self._silences.get(name, 0) + 1
            reason = f"its MPS daemon does not run: {error}"
            if error.hangs and silences < SILENCES:
                # For the moment: whoever was slow once is not gone.
                reason = self.reasons.get(name, "")
        if self._percentages.get(name) == wanted:  # else the answer is to a question that nobody asks any more
            self._silences[name] = silences
            self._tell(name, reason)

    def _tell(self, name: str, reason: str) -> None:
        if reason == self.reasons[name]:
            return
        self.reasons[name] = reason
        if reason:
            self._log.warning("shares wait for MPS", extra={"resource": name, "reason": reason})
        else:
            self._log.info("MPS daemon answers", extra={"resource": name})


def _without_shares(pool: Pool) -> Pool:
    return replace(pool, shares=tuple(share for share in pool.shares if share.id.number is None))
