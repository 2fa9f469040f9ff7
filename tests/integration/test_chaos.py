"""The controller killed again and again while everything changes: what counts in the end is the last state."""

from __future__ import annotations

import asyncio
import contextlib
import random
import sys
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from gpushare import names
from gpushare.domain import manifests
from support.clusters import IMAGE, NAMESPACE, POLICY, GpuCluster
from support.snapshots import time_slicing

NODES = [f"gpu{number:02}" for number in range(20)]
CHANGES = 200
KILLS = 12
BROKEN = "version: v1\nsharing: {timeSlicing: {resources: [{name: nvidia.com/gpu, replicas: -1}]}}\n"
OPT_OUT = "gpu.deploy.operands"


@dataclass
class World:
    """What people have made of the cluster, and what has to follow from it."""

    cluster: GpuCluster
    dice: random.Random
    texts: dict[str, str] = field(default_factory=dict)
    """The keys of the ConfigMap."""
    was: set[str] = field(default_factory=set)
    """All valid texts that there ever were."""
    default: str = ""
    named: bool = False
    enabled: bool = True
    labels: dict[str, str | None] = field(default_factory=dict)
    out: set[str] = field(default_factory=set)

    async def begin(self) -> None:
        """Twenty nodes, one policy, one ConfigMap."""
        for name in NODES:
            await self.cluster.add_node(name)
        await self._write("a", 2)
        await self.cluster.apply_policy()

    async def change(self) -> None:
        """One thing that people do."""
        deeds = (
            (4, self._edit),
            (6, self._label),
            (3, self._point),
            (2, self._opt_out),
            (1, self._switch),
            (1, self._renew_node),
            (1, self._renew_policy),
        )
        deed = self.dice.choices([deed for _, deed in deeds], weights=[weight for weight, _ in deeds])[0]
        await deed()

    async def _write(self, key: str, replicas: int) -> None:
        self.texts[key] = BROKEN if replicas < 0 else time_slicing(replicas)
        self.was |= {text for text in self.texts.values() if text != BROKEN}
        await self.cluster.apply_config("sharing", **self.texts)

    async def _edit(self) -> None:
        await self._write(self.dice.choice("abc"), self.dice.choice((2, 3, 4, 5, 6, -1)))

    async def _label(self) -> None:
        node, key = self.dice.choice(NODES), self.dice.choice(("a", "b", "c", "typo", None))
        self.labels[node] = key
        await self.cluster.label(node, config=key)

    async def _point(self) -> None:
        self.named, self.default = self.dice.random() < 0.8, self.dice.choice(("", "a", "b", "typo"))
        await self._write_policy()

    async def _switch(self) -> None:
        self.enabled = not self.enabled
        await self._write_policy()

    async def _write_policy(self) -> None:
        config = {"name": "sharing" if self.named else "", "default": self.default}
        await self.cluster.patch_policy({"devicePlugin": {"enabled": self.enabled, "config": config}})

    async def _opt_out(self) -> None:
        node = self.dice.choice(NODES)
        self.out ^= {node}
        await self.cluster.label(node, **{OPT_OUT: "false" if node in self.out else None})

    async def _renew_node(self) -> None:
        node = self.dice.choice(NODES)
        await self.cluster.admin.delete(manifests.NODE, node)
        self.labels.pop(node, None)
        self.out.discard(node)
        await self.cluster.add_node(node)

    async def _renew_policy(self) -> None:
        await self.cluster.admin.delete(manifests.CLUSTER_POLICY, POLICY)
        await self.cluster.apply_policy()
        self.named, self.default, self.enabled = False, "", True

    async def check(self, node: str) -> bool:
        """Whether a node is what the last state says. Raises AssertionError with what is wrong."""
        labels = (await self.cluster.get(manifests.NODE, node))["metadata"]["labels"]
        found = await self.cluster.admin.get(manifests.GPU_NODE, node)
        if not self.enabled or node in self.out:
            assert found is None, f"{node} has a GPUNode"
            return True
        assert labels.get(names.LABEL_PRESENT) == "true", (node, labels)
        assert labels.get(names.LABEL_DEPLOY_DEVICE_PLUGIN) == "true", (node, labels)
        assert found is not None, f"{node} has no GPUNode"
        uid = (await self.cluster.get(manifests.NODE, node))["metadata"]["uid"]
        assert found["metadata"]["ownerReferences"][0]["uid"] == uid
        config = found["spec"]["config"]
        key = (self.labels.get(node) or self.default) if self.named else ""
        if not key:
            assert (config["content"], config["reason"]) == ("", "none"), (node, config)
        elif (text := self.texts.get(key, BROKEN)) != BROKEN:
            assert (config["name"], config["content"]) == (key, text), (node, config)
        else:
            # It keeps what it had, and that depends on what the controller lived to see.
            assert config["content"] in {*self.was, ""}, (node, config)
            [assigned] = [c for c in found["status"]["conditions"] if c["type"] == "ConfigAssigned"]
            assert assigned["status"] == "False", (node, assigned)
        return True

    async def check_daemonset(self) -> bool:
        """The same of what runs the agents."""
        found = await self.cluster.admin.get(manifests.DAEMON_SET, names.DAEMONSET_DEVICE_PLUGIN, NAMESPACE)
        return (found is not None) == self.enabled


@pytest.fixture
async def cluster(tmp_path: Path) -> AsyncIterator[GpuCluster]:
    async with GpuCluster.running(tmp_path) as cluster:
        yield cluster


@contextlib.asynccontextmanager
async def controller(cluster: GpuCluster, folder: Path) -> AsyncIterator[asyncio.subprocess.Process]:
    """A process that is killed in the end, without a chance to tidy up."""
    with (folder / "controller.log").open("ab") as log:
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "gpushare", "controller", "--kubeconfig", str(cluster.write_kubeconfig())),
            *("--metrics-port", "0", "--namespace", NAMESPACE),
            # Always the same name, as a StatefulSet or a Deployment of one has it: its Lease is taken up at once.
            env={names.ENV_DEVICE_PLUGIN_IMAGE: IMAGE, names.ENV_POD_NAME: "controller-0"},
            stderr=log,
        )
        try:
            yield process
            assert process.returncode is None, (folder / "controller.log").read_text()[-2000:]
        finally:
            if process.returncode is None:
                process.kill()
            await process.wait()


@pytest.mark.timeout(600)
async def test_last_state_counts(cluster: GpuCluster, tmp_path: Path) -> None:
    """Two hundred changes, a dozen sudden ends at any moment; after quiet, every node is what the last state says."""
    dice = random.Random(random.random())  # the seed that pytest shows repeats it
    world = World(cluster, dice)
    await world.begin()
    lives = sorted(dice.sample(range(CHANGES), KILLS))
    done = 0
    for until in (*lives, CHANGES):
        async with controller(cluster, tmp_path):
            while done < until:
                await world.change()
                done += 1
                await asyncio.sleep(dice.uniform(0, 0.15))
            await asyncio.sleep(dice.uniform(0, 1.5))

    async with controller(cluster, tmp_path):
        for node in NODES:
            await cluster.until(f"{node} is as it should be", lambda node=node: world.check(node))
        # Nodes may be right before it has done anything; then the DaemonSet is what it has to see to.
        await cluster.until("the DaemonSet is as it should be", world.check_daemonset)
        await cluster.quiet(2.0)
        for node in NODES:
            assert await world.check(node)
