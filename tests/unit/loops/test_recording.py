"""Events on their way to the API server."""

from __future__ import annotations

import asyncio
import logging

from gpushare.domain import manifests
from gpushare.errors import ClusterRefused
from gpushare.sandbox.loops.events import CountedEvents
from gpushare.sandbox.loops.recording import Recorder
from support import workload_objects as objects
from support.memory_cluster import MemoryCluster


async def test_record():
    """Events are written in order, repeated ones counted; one that is refused is lost and stops nothing."""
    cluster = MemoryCluster()
    recorder = Recorder(cluster, CountedEvents("c"), logging.getLogger(__name__))
    node = objects.node("gpu01")
    cluster.refusals["create Event"] = ClusterRefused("no", code=403)
    recorder.normal(node, "Lost", "nobody reads it")
    recorder.normal(node, "Starting", "hello")
    recorder.warning(node, "Failing", "oh")
    recorder.warning(node, "Failing", "oh")
    task = asyncio.create_task(recorder.run())
    await cluster.until(lambda: len(cluster.writes) == 3)
    task.cancel()

    written = [(event["type"], event["reason"], event["count"]) for event in cluster.all(manifests.EVENT)]
    assert written == [("Normal", "Starting", 1), ("Warning", "Failing", 2)]
