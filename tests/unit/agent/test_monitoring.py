"""Health and figures over HTTP."""

from __future__ import annotations

from pathlib import Path

import pytest

from gpushare.agent.deciding import Assignment, Decider
from gpushare.agent.facts import Facts
from gpushare.agent.monitoring import Monitoring
from gpushare.agent.options import AgentOptions
from gpushare.domain.devices import Inventory
from gpushare.host.files import HostFiles
from gpushare.kubelet.lifecycle import Standing
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
    """Shares by state, health by GPU."""
    inventory = node(gpu(0, health=XID_79))
    status, text = await ask(Monitoring(lambda: facts(tmp_path, inventory)), "/metrics")

    assert status == 200
    assert 'gpushare_shares{resource="nvidia.com/gpu",state="unhealthy",strategy="time-slicing"} 2.0' in text
    assert 'gpushare_registered{resource="nvidia.com/gpu"} 1.0' in text
    assert 'gpushare_gpu_healthy{index="0",' in text
    assert "gpushare_config_applied{revision=" in text
