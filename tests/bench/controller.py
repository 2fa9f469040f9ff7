"""The controller with 5,000 nodes: how long, how many writes, how much memory."""

from __future__ import annotations

import asyncio
import tempfile
from pathlib import Path

from bench.crowd import Crowd
from bench.figures import Figure
from gpushare import names
from gpushare.domain import manifests
from support.clusters import NAMESPACE
from support.snapshots import time_slicing

NODES = 5_000
HALF = NODES // 2
FEW = 500
PASSES = 1_000
QUIET_SECONDS = 60.0


def measure() -> list[Figure]:
    """Five thousand nodes, then a thousand passes with five hundred."""
    with tempfile.TemporaryDirectory() as folder:
        figures = asyncio.run(_fleet(Path(folder)))
    with tempfile.TemporaryDirectory() as folder:
        return [*figures, *asyncio.run(_passes(Path(folder)))]


async def _fleet(folder: Path) -> list[Figure]:
    async with Crowd.running(folder, NODES) as crowd:
        await _set_up(crowd)
        all_names = [f"node-{number:05}" for number in range(NODES)]
        async with crowd.controller() as controller:
            figures = await _first_labelling(crowd)
            await crowd.start_agents(all_names)
            player = asyncio.create_task(crowd.follow())
            # What the agents have found comes to the labels in passes of their own, seconds later where there are many.
            await crowd.written("nodes", NODES)
            await _settle(crowd)
            figures += await _edit(crowd)
            figures += await _one_not_ready(crowd, all_names[0])
            figures.append(
                Figure(
                    name=f"RSS of the controller, {NODES:,} nodes",
                    unit="MiB",
                    values=(controller.memory_mib,),
                    target=400,
                )
            )
        async with crowd.controller():
            figures += await _nothing_to_do(crowd)
        player.cancel()
        return figures


async def _set_up(crowd: Crowd) -> None:
    await crowd.cluster.apply_config("sharing", a=time_slicing(2), b=time_slicing(3))
    await crowd.cluster.apply_policy(devicePlugin={"config": {"name": "sharing", "default": "a"}})
    for number in range(HALF):
        labels = {"metadata": {"labels": {names.LABEL_CONFIG: "b"}}}
        await crowd.send(
            "PATCH", f"/api/v1/nodes/node-{number:05}", labels, kind="application/merge-patch+json", manager="person"
        )
    crowd.take_writes()


async def _first_labelling(crowd: Crowd) -> list[Figure]:
    seconds = await crowd.written("nodes", NODES)
    await crowd.quiet(3.0)
    writes = crowd.take_writes()
    return [
        Figure(name=f"first labelling of {NODES:,} nodes", unit="s", values=(seconds,), target=60),
        Figure(name="writes to Nodes for that", unit="writes", values=(writes["nodes"],), target=NODES),
    ]


async def _settle(crowd: Crowd) -> None:
    await crowd.quiet(8.0)
    crowd.take_writes()


async def _edit(crowd: Crowd) -> list[Figure]:
    await crowd.cluster.apply_config("sharing", a=time_slicing(2), b=time_slicing(4))

    seconds = await crowd.written("gpunodes", HALF)
    # Each agent then reports another number of replicas, which is a label.
    await crowd.written("nodes", HALF)
    await crowd.quiet(8.0)
    writes = crowd.take_writes()
    return [
        Figure(name=f"edit of a ConfigMap that concerns {HALF:,} nodes", unit="s", values=(seconds,), target=60),
        Figure(name="writes to GPUNodes for that", unit="writes", values=(writes["gpunodes"],), target=HALF),
        Figure(name="writes to Nodes for that", unit="writes", values=(writes["nodes"],), target=HALF),
    ]


async def _one_not_ready(crowd: Crowd, node: str) -> list[Figure]:
    await crowd.set_ready(node, is_ready=False)
    await asyncio.sleep(QUIET_SECONDS)
    writes = crowd.take_writes()
    await crowd.set_ready(node, is_ready=True)
    await _settle(crowd)
    name = "one pod of ours not ready for a minute: writes to "
    return [
        Figure(name=name + "the policy's status", unit="writes", values=(writes["clusterpolicies/status"],), target=1),
        Figure(name=name + "its GPUNode", unit="writes", values=(writes["gpunodes/status"],), target=1),
        Figure(
            name=name + "anything else",
            unit="writes",
            values=(writes.total() - writes["clusterpolicies/status"] - writes["gpunodes/status"],),
            target=0,
        ),
    ]


async def _nothing_to_do(crowd: Crowd) -> list[Figure]:
    async def leads() -> bool:
        lease = await crowd.cluster.get(manifests.LEASE, names.LEASE, NAMESPACE)
        return bool(lease["spec"].get("holderIdentity"))

    await crowd.until(leads)
    await asyncio.sleep(QUIET_SECONDS / 2)
    return [
        Figure(name="start with nothing to do: writes", unit="writes", values=(crowd.take_writes().total(),), target=0)
    ]


async def _passes(folder: Path) -> list[Figure]:
    async with Crowd.running(folder, FEW) as crowd:
        await crowd.cluster.apply_config("sharing", a=time_slicing(2), b=time_slicing(3))
        await crowd.cluster.apply_policy(devicePlugin={"config": {"name": "sharing", "default": "a"}})
        async with crowd.controller() as controller:
            await crowd.quiet(5.0)
            sizes = []
            for turn in range(PASSES * 2):
                if turn in {PASSES, 0}:
                    sizes.append(controller.memory_mib)
                await _flip(crowd, turn)
            sizes.append(controller.memory_mib)
    return [
        Figure(
            name=f"RSS of the controller, growth over {PASSES:,} passes",
            unit="MiB",
            values=(sizes[2] - sizes[1],),
            target=4,
        )
    ]


async def _flip(crowd: Crowd, turn: int) -> None:
    """One node changes its configuration, which is one pass and one write."""
    name, key = f"node-{turn % FEW:05}", "b" if turn // FEW % 2 == 0 else "a"
    labels = {"metadata": {"labels": {names.LABEL_CONFIG: key}}}
    await crowd.send("PATCH", f"/api/v1/nodes/{name}", labels, kind="application/merge-patch+json", manager="person")
    await crowd.cluster.until_config(name, name=key)
