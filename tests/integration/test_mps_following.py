"""What the MPS process goes by in a cluster, and what it tells of itself."""

from __future__ import annotations

import asyncio
import socket
import urllib.error
import urllib.request
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from gpushare.domain import manifests
from gpushare.domain.conditions import Condition
from gpushare.domain.gpunode import CONFIG_APPLIED, Config, ConfigReason, ConfigSource, GPUNode
from gpushare.mps.running import is_in_force
from support.memory_cluster import MemoryCluster
from support.mps_nodes import CONFIG_FILE, GPU, MpsNode, mps, until
from support.mps_programs import daemon_pid, kill_daemon


@pytest.fixture
async def node(tmp_path: Path) -> AsyncIterator[MpsNode]:
    made = MpsNode(tmp_path)
    yield made
    kill_daemon(tmp_path, GPU)


def gpu_node(text: str, *, generation: int, applied: str = "True", observed: int | None = None) -> dict[str, Any]:
    """A GPUNode with this configuration, and what its agent says of it."""
    config = Config(
        reason=ConfigReason.LABEL, source=ConfigSource(namespace="gpu-operator", name="m", key="k"), content=text
    )
    condition = Condition(
        type=CONFIG_APPLIED,
        status=applied,
        reason="Applied",
        last_transition_time="2026-11-29T12:00:00Z",
        observed_generation=generation if observed is None else observed,
    )
    return {
        "apiVersion": manifests.GPU_NODE.api_version,
        "kind": manifests.GPU_NODE.kind,
        "metadata": {"name": "gpu01", "generation": generation},
        "spec": {"config": config.to_json()},
        "status": {"conditions": [condition.to_json()]},
    }


@pytest.mark.parametrize(
    ("manifest", "expected"),
    [
        pytest.param(gpu_node(mps(4), generation=2), True, id="applied"),
        pytest.param(gpu_node(mps(4), generation=2, observed=1), False, id="not seen by the agent yet"),
        pytest.param(gpu_node(mps(4), generation=2, applied="False"), False, id="refused or held back"),
        pytest.param({"metadata": {"name": "gpu01", "generation": 1}}, False, id="no agent yet"),
    ],
)
def test_is_in_force(manifest: dict[str, Any], *, expected: bool) -> None:
    """The agent's word counts, and only about what is assigned now."""
    assert is_in_force(GPUNode.from_json(manifest)) is expected


async def test_follows_the_agent(node: MpsNode) -> None:
    """A configuration comes into force here when it has there; until then clients keep their daemon."""
    cluster = MemoryCluster()
    await cluster.create(gpu_node(mps(4), generation=1))
    async with node.running("--node-name=gpu01", cluster=cluster):
        await until(node.runs)
        pid = daemon_pid(node.root, GPU)

        refused = gpu_node(mps(2), generation=2, applied="False")
        await cluster.patch(manifests.GPU_NODE, "gpu01", {"spec": refused["spec"], "status": refused["status"]})
        await asyncio.sleep(0.3)
        assert daemon_pid(node.root, GPU) == pid

        await cluster.patch(manifests.GPU_NODE, "gpu01", {"status": gpu_node(mps(2), generation=2)["status"]})
        await until(lambda: node.runs(50))


async def test_answers_over_http(node: MpsNode) -> None:
    """Alive at once, ready when the daemons run, and figures."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    node.configure(mps(4))

    async def get(path: str) -> str:
        return await asyncio.to_thread(_get, f"http://127.0.0.1:{port}{path}")

    async with node.running(*CONFIG_FILE, "--metrics-address=127.0.0.1", f"--metrics-port={port}"):
        await until(node.runs)
        await until_it_says(get, "200 ok")
        assert await get("/healthz") == "200 ok"
        assert 'gpushare_mps_daemon_up{resource="nvidia.com/gpu"} 1.0' in await get("/metrics")
        assert (await get("/")).startswith("404")

        node.programs.now("start-fails")
        kill_daemon(node.root, GPU)
        await until_it_says(get, "503 nvidia.com/gpu: nvidia-cuda-mps-control failed")


async def until_it_says(get: Callable[[str], Awaitable[str]], beginning: str) -> None:
    async with asyncio.timeout(60):
        while not (await get("/readyz")).startswith(beginning):  # noqa: ASYNC110 - HTTP has no event
            await asyncio.sleep(0.05)


def _get(url: str) -> str:
    """Status and body; -1 while nobody listens."""
    try:
        with urllib.request.urlopen(url) as answer:
            return f"{answer.status} {answer.read().decode().strip()}"
    except urllib.error.HTTPError as error:
        with error:
            return f"{error.code} {error.read().decode().strip()}"
    except OSError:
        return "-1"
