"""Connections to the replica that leads."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from gpushare.kube.http import Address, Connection
from gpushare.scheduler import forwarding
from gpushare.scheduler.forwarding import Forwarder, Unreachable
from gpushare.serving.http import Request


class NoPool:
    """Lends nothing, and takes a moment to close."""

    made: list[NoPool]

    def __init__(self, _address: Address, *, most: int) -> None:
        self.most, self.is_closed = most, False
        self.made.append(self)

    @asynccontextmanager
    async def lend(self) -> AsyncIterator[Connection]:
        await asyncio.sleep(0)
        raise OSError("refused")
        yield

    async def close(self) -> None:
        await asyncio.sleep(0)
        self.is_closed = True


async def test_every_connection_is_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where two calls find another leader at the same time."""
    monkeypatch.setattr(NoPool, "made", [], raising=False)
    monkeypatch.setattr(forwarding, "Pool", NoPool)
    forwarder = Forwarder("gpushare-scheduler", lambda: "")

    async def forward(leader: str) -> None:
        with pytest.raises(Unreachable, match="refused"):
            await forwarder.forward(Request(method="POST", path="/filter"), leader)

    await forward("10.0.0.1:8443")
    await asyncio.gather(forward("10.0.0.2:8443"), forward("10.0.0.2:8443"))
    assert [pool.is_closed for pool in NoPool.made] == [True, False]
    await forwarder.close()

    assert all(pool.is_closed for pool in NoPool.made)
