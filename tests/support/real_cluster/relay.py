"""Hands connections to a port of this machine on to a port of the cluster's network: `relay.py FD PORT`.

Runs in that network with a socket that was opened outside of it, since a socket stays in the network in which it was made.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
import sys


async def main(descriptor: int, port: int) -> None:
    """Passes bytes on until it is ended."""

    async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            far_reader, far_writer = await asyncio.open_connection("127.0.0.1", port)
        except OSError:
            writer.transport.abort()
            return
        await asyncio.gather(_pass(reader, far_writer), _pass(far_reader, writer))

    server = await asyncio.start_server(connected, sock=socket.socket(fileno=descriptor))
    await server.serve_forever()


async def _pass(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with contextlib.suppress(OSError):
        while received := await reader.read(65536):
            writer.write(received)
            await writer.drain()
    writer.close()


asyncio.run(main(int(sys.argv[1]), int(sys.argv[2])))
