"""What the status of a policy costs: nothing while nothing changes, whatever pods of ours go through."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from gpushare.domain import manifests
from support.clusters import NAMESPACE, GpuCluster

IMAGE = {"image": "x", "imageID": "", "name": "agent", "ready": False}


@pytest.fixture
async def cluster(tmp_path: Path) -> AsyncIterator[GpuCluster]:
    """One GPU node whose agent is at work, and nothing left to write."""
    async with GpuCluster.running(tmp_path) as cluster:
        await cluster.add_node("gpu01")
        async with cluster.controller():
            await cluster.apply_policy()
            await cluster.until_config("gpu01", reason="none")
            await cluster.roll_out()
            await cluster.run_agent("gpu01")
            await cluster.until_condition("Ready", "True")
            await cluster.quiet()
            cluster.writes.clear()
            yield cluster


async def set_pod(cluster: GpuCluster, *, ready: bool, **container: Any) -> None:
    status = {
        "conditions": [{"type": "Ready", "status": str(ready)}],
        "containerStatuses": [{**IMAGE, **container}],
    }
    await cluster.admin.patch(manifests.POD, "agent-gpu01", {"status": status}, NAMESPACE, subresource="status")


CRASHES = [
    {"state": {"terminated": {"exitCode": 1, "reason": "Error"}}, "restartCount": 1},
    {
        "state": {"waiting": {"reason": "CrashLoopBackOff"}},
        "restartCount": 1,
        "lastState": {"terminated": {"exitCode": 1}},
    },
    {"state": {"running": {}}, "restartCount": 2, "lastState": {"terminated": {"exitCode": 1}}},
]
PULLS = [
    {"state": {"waiting": {"reason": reason}}, "restartCount": 0} for reason in ("ErrImagePull", "ImagePullBackOff")
]


@pytest.mark.parametrize(
    "states", [pytest.param(CRASHES, id="crashes"), pytest.param(PULLS, id="cannot pull its image")]
)
async def test_unready_pod(cluster: GpuCluster, states: list[dict[str, Any]]) -> None:
    """A pod that comes and goes for a whole night is told once, and once more when it is well."""
    for number in range(12):
        await set_pod(cluster, ready=False, **{**states[number % len(states)], "restartCount": number + 1})
        if number == 0:
            await cluster.until_condition("Ready", "False")
    await cluster.quiet()
    assert len(cluster.writes_to("clusterpolicies")) == 1
    assert len(cluster.writes_to("gpunodes")) == 1

    await set_pod(cluster, ready=True, restartCount=99)
    await cluster.until_condition("Ready", "True")
    await cluster.quiet()
    assert len(cluster.writes_to("clusterpolicies")) == 2
