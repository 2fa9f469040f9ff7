"""Answering over HTTP for the whole life of a process: metrics and health of each, and webhooks."""

from __future__ import annotations

import asyncio
import logging
import ssl
from typing import Final

from gpushare.serving.http import MAX_BODY_BYTES, Handler, HttpServer

RETRY_SECONDS: Final = 2.0


async def listen(  # noqa: PLR0913 - where, for whom and for what are each one thing
    handler: Handler,
    address: str,
    port: int,
    log: logging.Logger,
    *,
    purpose: str = "metrics and health",
    tls: ssl.SSLContext | None = None,
    most_bytes: int = MAX_BODY_BYTES,
    pause: float = RETRY_SECONDS,
) -> None:
    """Serves until cancelled.

    An address that cannot be had is tried again: on the host's network, a predecessor may not have let go of it yet. Whoever
    asks for readiness sees meanwhile that nobody answers.

    Args:
        handler: answers every request.
        address: to listen on; empty: all of them.
        port: 0: any free one.
        log: is told the port, and once what is wrong.
        purpose: what is served, for the log.
        tls: None: without encryption.
        most_bytes: the longest body of a request that is taken.
        pause: seconds between two tries.
    """
    told = ""
    while True:
        server = HttpServer(handler, log, most_bytes=most_bytes)
        try:
            found = await server.start(address, port, tls=tls)
            log.info("listening", extra={"purpose": purpose, "address": address or "all", "port": found})
            await asyncio.Event().wait()
        except OSError as error:
            if told != str(error):
                told = str(error)
                log.warning("cannot listen", extra={"purpose": purpose, "reason": told})
        finally:
            await server.stop()
        await asyncio.sleep(pause)
