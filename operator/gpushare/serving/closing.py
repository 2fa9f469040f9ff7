"""Ends that leave nothing behind, whoever is just connecting and however often one is cancelled.

Used by `http`, the sandbox's API server, and whatever has tasks to end.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, Final

_TURNS: Final = 2
"""Of the event loop, from a connection that is accepted to one that its protocol knows."""


async def close(server: asyncio.Server) -> None:
    """Stops listening. Every connection that was accepted before is known to its protocol afterwards.

    A server of asyncio's that is closed between the two drops the connection without closing its socket: the client waits
    for an answer until the garbage collector comes.
    """
    loop = asyncio.get_running_loop()
    for listening in server.sockets:
        loop.remove_reader(listening)
    for _ in range(_TURNS):
        await asyncio.sleep(0)
    server.close()


async def finish(work: Coroutine[Any, Any, object]) -> None:
    """Sees an end to its end, also when whoever waits for it is cancelled meanwhile, which is raised afterwards."""
    task = asyncio.create_task(work)
    interruption: asyncio.CancelledError | None = None
    while not task.done():
        try:
            await asyncio.wait({task})
        except asyncio.CancelledError as error:
            interruption = error
    if interruption is not None:
        raise interruption
    task.result()
