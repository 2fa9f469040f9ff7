"""Two replicas of the controller as processes, one of which is stopped, killed, or asked to end."""

from __future__ import annotations

import asyncio
import contextlib
import json
import signal
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from gpushare import names
from gpushare.domain import manifests
from support.clusters import IMAGE, NAMESPACE, GpuCluster
from support.snapshots import time_slicing

NODES = ("gpu01", "gpu02", "gpu03")


class Replica:
    """One controller as a process."""

    def __init__(self, name: str, process: asyncio.subprocess.Process) -> None:
        self.name = name
        self.process = process

    @classmethod
    @contextlib.asynccontextmanager
    async def running(cls, cluster: GpuCluster, name: str, folder: Path) -> AsyncIterator[Replica]:
        log = (folder / f"{name}.log").open("w+b")
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "gpushare", "controller", "--kubeconfig", str(cluster.write_kubeconfig())),
            *("--metrics-port", "0", "--namespace", NAMESPACE),
            env={"DEVICE_PLUGIN_IMAGE": IMAGE, names.ENV_POD_NAME: name},
            cwd=folder,
            stderr=log,
        )
        try:
            yield cls(name, process)
        finally:
            if process.returncode is None:
                process.send_signal(signal.SIGCONT)
                process.terminate()
                await process.wait()
            log.seek(0)
            print(log.read().decode())  # noqa: T201 - for whoever looks why it fails
            log.close()

    def told(self, folder: Path) -> list[str]:
        """The messages of its log."""
        lines = (folder / f"{self.name}.log").read_text().splitlines(keepends=True)
        # The last one may still be on its way.
        return [json.loads(line)["message"] for line in lines if line.endswith("\n")]


@pytest.fixture
async def cluster(tmp_path: Path) -> AsyncIterator[GpuCluster]:
    async with GpuCluster.running(tmp_path) as cluster:
        for name in NODES:
            await cluster.add_node(name)
        await cluster.apply_config("sharing", two=time_slicing(2), four=time_slicing(4), six=time_slicing(6))
        await cluster.apply_policy(devicePlugin={"config": {"name": "sharing", "default": "two"}})
        yield cluster


@pytest.fixture
async def replicas(cluster: GpuCluster, tmp_path: Path) -> AsyncIterator[list[Replica]]:
    """The leader, and the other."""
    async with Replica.running(cluster, "replica-0", tmp_path) as first:
        await until_leads(cluster, first)
        await until_all(cluster, "two")
        async with Replica.running(cluster, "replica-1", tmp_path) as second:

            async def waits() -> bool:
                return "another replica leads" in second.told(tmp_path)

            await cluster.until("the other is there", waits)
            yield [first, second]


async def until_leads(cluster: GpuCluster, replica: Replica) -> None:
    async def holds() -> bool:
        lease = await cluster.get(manifests.LEASE, names.LEASE, NAMESPACE)
        assert lease["spec"].get("holderIdentity") == replica.name, lease["spec"]
        return True

    await cluster.until(f"{replica.name} leads", holds)


async def until_all(cluster: GpuCluster, key: str) -> None:
    for name in NODES:
        await cluster.until_config(name, name=key)


async def name_config(cluster: GpuCluster, key: str) -> None:
    await cluster.patch_policy({"devicePlugin": {"config": {"name": "sharing", "default": key}}})


async def test_asked_to_end(cluster: GpuCluster, replicas: list[Replica]) -> None:
    """A leader that ends gives up the Lease, so that the other need not wait until it runs out."""
    leader, other = replicas
    leader.process.terminate()
    assert await leader.process.wait() == 0

    lease = await cluster.get(manifests.LEASE, names.LEASE, NAMESPACE)
    assert lease["spec"].get("holderIdentity") in {None, other.name}
    await until_leads(cluster, other)
    await name_config(cluster, "four")
    await until_all(cluster, "four")


async def test_stopped_and_back(cluster: GpuCluster, replicas: list[Replica], tmp_path: Path) -> None:
    """A leader that stands still is replaced; when it goes on, it notices, and what it writes late does not last."""
    leader, other = replicas
    # In the middle of work, so that it has writes to do when it goes on.
    await name_config(cluster, "four")
    leader.process.send_signal(signal.SIGSTOP)
    await until_leads(cluster, other)
    await until_all(cluster, "four")
    await name_config(cluster, "six")
    await until_all(cluster, "six")

    leader.process.send_signal(signal.SIGCONT)

    async def noticed() -> bool:
        return "no longer leading" in leader.told(tmp_path)

    await cluster.until("it notices", noticed)
    await until_all(cluster, "six")
    await cluster.quiet()
    await until_all(cluster, "six")
    await until_leads(cluster, other)
    assert leader.process.returncode is None

    other.process.kill()
    await other.process.wait()
    await until_leads(cluster, leader)
    await name_config(cluster, "two")
    await until_all(cluster, "two")
