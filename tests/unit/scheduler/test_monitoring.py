"""What the scheduler tells of itself: whether it is ready, and its figures."""

from __future__ import annotations

import logging
from dataclasses import replace
from typing import Any

import pytest

from gpushare.domain.fractions import Decision, Dialect, Grant
from gpushare.domain.gpunode import GPUNode
from gpushare.placement.quotas import Charge, Quota
from gpushare.scheduler.books import Books
from gpushare.scheduler.flights import Flights
from gpushare.scheduler.monitoring import Facts, Monitoring
from gpushare.scheduler.pods import SeenPod
from gpushare.scheduler.timing import Spread
from gpushare.serving.http import Request
from gpushare.serving.tls import Place, ServingCertificate
from support.memory_cluster import MemoryCluster
from support.schedulers import gpu_node

MIB = 1024 * 1024


def facts(**changes: Any) -> Facts:
    """A leader of two nodes, one of which is not ready, with one pod on its way."""
    books = Books(Flights(), lambda _: None, lambda _: None)
    for name, ready in (("n1", "True"), ("n2", "False")):
        books.see_gpu_node(GPUNode.from_json(gpu_node(name, 2, memory=1000, ready=ready)))
    grants = {"main": (Grant("GPU-n1-0", 300, 10),)}
    decision = Decision(pod_uid="a", dialect=Dialect.HAMI, shape="s", containers=grants)
    books.see_pod(SeenPod(uid="a", namespace="ns", name="a", node="n1", decision=decision, started=""))
    place = Place(namespace="n", secret="s", owner="o", hosts=())
    found = Facts(
        missing=(), leading=True, leader_known=False, books=books, waiting=0, binds={}, verdicts={}, corrections=0,
        strangers=0, spreads={}, quotas={},
        certificate=ServingCertificate(MemoryCluster(), place, log=logging.getLogger()).gauge(),
    )  # fmt: skip
    return replace(found, **changes)


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        pytest.param({}, "", id="leads"),
        pytest.param({"leading": False, "leader_known": True}, "", id="knows who leads"),
        pytest.param({"leading": False}, "no replica leads yet", id="nobody leads"),
        pytest.param({"missing": ("pods", "nodes")}, "not everything has been seen yet of pods, nodes", id="blind"),
    ],
)
def test_ready(changes: dict[str, Any], expected: str) -> None:
    """Ready means that it answers, by itself or through the leader."""
    assert Monitoring(lambda: facts(**changes)).why_not_ready() == expected


async def test_figures() -> None:
    """Of nodes, pods, answers and quotas; a quota of which only one thing is limited tells that one."""
    spread = Spread()
    spread.add(0.002)
    spread.add(0.5)
    quotas = {"team": (Quota(memory_mib=500), Charge(300, 10))}
    monitoring = Monitoring(lambda: facts(spreads={"filter": spread}, quotas=quotas, waiting=3))
    answer = await monitoring.answer(Request(method="GET", path="/metrics"))
    assert isinstance(answer.body, bytes)
    told = answer.body.decode().splitlines()

    expected = {
        'nodes{state="ready"}': 1,
        'nodes{state="not_ready"}': 1,
        "memory_total_bytes": 4000 * MIB,
        "memory_allocated_bytes": 300 * MIB,
        'pods{stage="bound"}': 1,
        "pods_waiting": 3,
        'request_duration_seconds_count{verb="filter"}': 2,
        'request_duration_seconds_sum{verb="filter"}': 0.502,
        'quota_memory_bytes{figure="limit",namespace="team"}': 500 * MIB,
        'quota_memory_bytes{figure="used",namespace="team"}': 300 * MIB,
    }
    figures = dict(line.removeprefix("gpushare_scheduler_").rsplit(" ", 1) for line in told if not line.startswith("#"))
    assert {name: float(figures[name]) for name in expected} == expected
    assert not any("quota_cores" in line for line in told)
