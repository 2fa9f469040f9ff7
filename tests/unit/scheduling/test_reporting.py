"""How often people are told that a pod does not fit."""

from __future__ import annotations

import asyncio
import logging
import math

import pytest

from gpushare.domain import manifests
from gpushare.sandbox.loops.events import SerialEvents
from gpushare.sandbox.loops.recording import Recorder
from gpushare.sandbox.scheduling import reporting
from gpushare.sandbox.scheduling.reporting import Reporter
from support import workload_objects as objects
from support.memory_cluster import MemoryCluster

LOG = logging.getLogger(__name__)
POD = objects.pod("web")


class Clock:
    """Stands in for the module `time`."""

    def __init__(self):
        self.now = 1000.0

    def monotonic(self):
        return self.now

    def time(self):
        return objects.NOW


@pytest.fixture
def clock(monkeypatch):
    made = Clock()
    monkeypatch.setattr(reporting, "time", made)
    return made


class Heard:
    """A recorder that keeps what is said."""

    def __init__(self):
        self.messages = []

    def warning(self, _about, _reason, message, **_more):
        self.messages.append(message)


@pytest.fixture
def heard():
    return Heard()


@pytest.fixture
def reporter(heard, clock):
    return Reporter(MemoryCluster(), heard, LOG)


def test_once(reporter, heard, clock):
    """The same message is said once, and again after five minutes."""
    for _ in range(3):
        reporter.report(POD, "no GPUs")
    assert heard.messages == ["no GPUs"]
    assert reporter.seconds_until_due() == math.inf

    clock.now += 301
    reporter.report(POD, "no GPUs")
    assert heard.messages == ["no GPUs", "no GPUs"]


def test_changes_wait(reporter, heard, clock):
    """A message that keeps changing is said after 1, 2, 4, 8 and then every 10 seconds."""
    reporter.report(POD, "message 0")
    times = []
    for number in range(1, 40 * 4):
        clock.now += 0.25
        reporter.report(POD, f"message {number}")
        if len(heard.messages) == len(times) + 2:
            times.append(clock.now - 1000)

    assert times == [1, 3, 7, 15, 25, 35]


def test_due(reporter, heard, clock):
    """A change that has to wait is due when its time comes, unless it is taken back."""
    reporter.report(POD, "no GPUs")
    clock.now += 0.25
    reporter.report(POD, "no nodes")
    assert reporter.seconds_until_due() == 0.75
    reporter.report(POD, "no GPUs")
    assert reporter.seconds_until_due() == math.inf
    assert heard.messages == ["no GPUs"]


def test_forget(reporter, heard):
    """A pod that was placed, and another one of its name, begin anew."""
    reporter.report(POD, "no GPUs")
    reporter.forget(POD["metadata"]["uid"])
    reporter.report(POD, "no GPUs")
    assert heard.messages == ["no GPUs", "no GPUs"]


async def test_condition(clock):
    """The condition is written with its time of change, and not on a pod that was changed meanwhile."""
    cluster = MemoryCluster()
    first = await cluster.create(objects.pod("first"))
    stale = await cluster.create(objects.pod("stale"))
    await cluster.patch(manifests.POD, "stale", {"spec": {"nodeName": "gpu01"}}, "default")
    reporter = Reporter(cluster, Recorder(cluster, SerialEvents("s", "s-1"), LOG), LOG)
    reporter.report(stale, "no GPUs")
    reporter.report(first, "no GPUs")
    task = asyncio.create_task(reporter.run())
    await cluster.until(lambda: cluster.now(manifests.POD, "first", "default")["status"].get("conditions"))
    task.cancel()

    assert cluster.now(manifests.POD, "first", "default")["status"]["conditions"] == [
        {
            "type": "PodScheduled",
            "status": "False",
            "reason": "Unschedulable",
            "message": "no GPUs",
            "observedGeneration": 1,
            "lastTransitionTime": objects.TIME,
        }
    ]
    assert "conditions" not in cluster.now(manifests.POD, "stale", "default")["status"]
