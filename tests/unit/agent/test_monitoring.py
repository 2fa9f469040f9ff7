"""Health and figures over HTTP."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from prometheus_client.utils import floatToGoString

from gpushare.agent.deciding import Assignment, Decider
from gpushare.agent.facts import Counts, Facts
from gpushare.agent.fractions.reporting import Holding
from gpushare.agent.monitoring import Monitoring
from gpushare.agent.options import AgentOptions
from gpushare.domain.devices import Inventory
from gpushare.domain.fractions import Grant
from gpushare.domain.troubles import Cause, Trouble
from gpushare.host.files import HostFiles
from gpushare.kubelet.counting import Call
from gpushare.kubelet.lifecycle import Standing
from gpushare.kubelet.values import ContainerDevices
from gpushare.serving.http import Request
from support.inventories import XID_79, gpu, node, t4s

GPU = "nvidia.com/gpu"


def facts(tmp_path: Path, inventory: Inventory | None, *, registered: bool = True) -> Facts:
    text = "sharing: {timeSlicing: {resources: [{name: nvidia.com/gpu, replicas: 2}]}}"
    decision = Decider(AgentOptions(), HostFiles(tmp_path)).decide(Assignment(content=text), None, inventory, ())
    return Facts(
        decision=decision,
        generation=None,
        inventory=inventory,
        failure="" if inventory else "no driver",
        pools=decision.pools,
        standings={GPU: Standing(registered=registered, message="" if registered else "no kubelet")},
    )


async def ask(monitoring: Monitoring, path: str) -> tuple[int, str]:
    answer = await monitoring.answer(Request(method="GET", path=path))
    assert isinstance(answer.body, bytes)
    return answer.status, answer.body.decode()


@pytest.mark.parametrize(
    ("inventory", "registered", "expected"),
    [
        pytest.param(t4s(1), True, (200, "ok\n"), id="ready"),
        pytest.param(None, True, (503, "driver: no driver\n"), id="no driver"),
        pytest.param(t4s(1), False, (503, "nvidia.com/gpu: no kubelet\n"), id="no kubelet"),
    ],
)
async def test_ready(tmp_path: Path, inventory: Inventory | None, registered: bool, expected: tuple[int, str]) -> None:
    """Ready means that pods can be given GPUs."""
    monitoring = Monitoring(lambda: facts(tmp_path, inventory, registered=registered))

    assert await ask(monitoring, "/readyz") == expected
    assert await ask(monitoring, "/healthz") == (200, "ok\n")


async def test_starting() -> None:
    """Alive, not ready, no figures yet."""
    monitoring = Monitoring(lambda: None)

    assert await ask(monitoring, "/readyz") == (503, "starting\n")
    assert await ask(monitoring, "/metrics") == (200, "")
    assert (await ask(monitoring, "/"))[0] == 404


async def test_metrics(tmp_path: Path) -> None:
    """Shares by health, devices by what ails them, and what has happened."""
    counts = Counts(errors={(gpu(0).uuid, 79): 2}, reloads={"applied": 1, "refused": 3})
    counts.kubelet.count_registration(GPU, succeeded=True)
    counts.kubelet.count_call(Call(GPU, "Allocate", "OK"), 0.0004)
    trouble = Trouble(gpu=gpu(0).uuid, cause=Cause.HARDWARE, reason="XID 79", since="")
    now = replace(
        facts(tmp_path, node(gpu(0, health=XID_79))),
        counts=counts,
        troubles=(trouble,),
        streams={GPU: 1},
        holders=(ContainerDevices(namespace="n", pod="p", container="c", resource=GPU, ids=("a", "b", "c")),),
    )
    status, text = await ask(Monitoring(lambda: now), "/metrics")

    assert status == 200
    for line in (
        'gpushare_shares{health="unhealthy",resource="nvidia.com/gpu",strategy="time-slicing"} 2.0',
        'gpushare_shares{health="healthy",resource="nvidia.com/gpu",strategy="time-slicing"} 0.0',
        'gpushare_shares_allocated{resource="nvidia.com/gpu"} 3.0',
        'gpushare_shares_per_device{resource="nvidia.com/gpu"} 2.0',
        f'gpushare_gpu_healthy{{index="0",product="Tesla T4",uuid="{gpu(0).uuid}"}} 0.0',
        'gpushare_device_troubles{cause="hardware"} 1.0',
        'gpushare_device_troubles{cause="lost"} 0.0',
        f'gpushare_gpu_errors_total{{uuid="{gpu(0).uuid}",xid="79"}} 2.0',
        "gpushare_driver_up 1.0",
        "gpushare_config_applied 1.0",
        'gpushare_config_reloads_total{result="refused"} 3.0',
        'gpushare_config_reloads_total{result="unchanged"} 0.0',
        'gpushare_registered{resource="nvidia.com/gpu"} 1.0',
        'gpushare_registrations_total{resource="nvidia.com/gpu",result="succeeded"} 1.0',
        'gpushare_list_streams{resource="nvidia.com/gpu"} 1.0',
        'gpushare_grpc_request_duration_seconds_bucket{code="OK",le="0.0005",method="Allocate",resource="nvidia.com/gpu"} 1.0',
    ):
        assert line in text.splitlines()


async def test_metrics_of_fractions(tmp_path: Path) -> None:
    """What there is of each GPU and what containers were given of it; why others were not let in."""
    inventory, known = t4s(2), facts(tmp_path, t4s(2))
    text = "gpushare: {fractions: hami, memoryScaling: 1.5}"
    decision = Decider(AgentOptions(), HostFiles(tmp_path)).decide(Assignment(content=text), None, inventory, ())
    parts = {
        ("n", pod, "c"): Holding(pod_uid=pod, resource=GPU, grants={gpu(1).uuid: Grant(gpu(1).uuid, 1024, cores)})
        for pod, cores in (("a", 30), ("b", 0))
    }
    now = replace(
        known, decision=decision, pools=decision.pools, fractions=parts, counts=Counts(refusals={"NoRoom": 2})
    )
    _, page = await ask(Monitoring(lambda: now), "/metrics")

    place = f'{{index="1",uuid="{gpu(1).uuid}"}}'
    for line in (
        f"gpushare_fraction_memory_bytes{place} {floatToGoString(22.5 * 2**30)}",
        f"gpushare_fraction_memory_allocated_bytes{place} {floatToGoString(2.0 * 2**30)}",
        f"gpushare_fraction_cores_allocated_percent{place} 30.0",
        f'gpushare_fraction_cores_allocated_percent{{index="0",uuid="{gpu(0).uuid}"}} 0.0',
        'gpushare_fraction_refusals_total{reason="NoRoom"} 2.0',
    ):
        assert line in page.splitlines()
    assert "gpushare_fraction" not in (await ask(Monitoring(lambda: known), "/metrics"))[1]


async def test_metrics_without_a_driver(tmp_path: Path) -> None:
    """What can be told is."""
    _, text = await ask(Monitoring(lambda: facts(tmp_path, None)), "/metrics")

    assert "gpushare_driver_up 0.0" in text
    assert "gpushare_gpu_healthy" not in text
