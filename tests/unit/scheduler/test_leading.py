"""Which replica decides."""

from __future__ import annotations

import asyncio
import logging

import pytest

from gpushare import names
from gpushare.kube.leading import Lease
from gpushare.scheduler.leading import Leading
from support.memory_cluster import MemoryCluster

LOG = logging.getLogger("test")


async def test_preparation_that_breaks() -> None:
    """Nobody decides who does not know everything: the process ends and says why."""

    async def prepare(_changed_hands: bool) -> None:
        raise KeyError("books")

    async def resign() -> None:
        raise AssertionError("it never led")

    lease = Lease(MemoryCluster(), "gpu-operator", names.LEASE_SCHEDULER, "one", log=LOG)
    leading = Leading(lease, "one", prepare=prepare, resign=resign, log=LOG)

    with pytest.raises(KeyError, match="books"):
        async with asyncio.timeout(60):
            await leading.run()

    assert leading.terms == 0
