"""The walk-through of time slicing, typed into real kubectl, on a cluster with a real node.

Its second node, with MIG instances of A100 GPUs, is a simulated one beside the real one.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest

from gpushare.sandbox.tour import engine, steps
from support.real_cluster import simulated
from support.real_cluster.gpu_node import GpuNode
from support.real_cluster.kubectl import PATIENCE, until

SECOND_NODE = """\
nodes:
- name: gpu02
  driver: {version: 550.90.07, cuda: "12.4"}
  gpus:
  - {model: A100-SXM4-40GB, mig: [1g.5gb, 2g.10gb, 3g.20gb]}
  - {model: A100-SXM4-40GB}
"""


@pytest.fixture
def two_nodes(node: GpuNode, tmp_path: Path) -> Iterator[GpuNode]:
    """The real node without sharing, and the second one."""
    scenario = tmp_path / "second.yaml"
    scenario.write_text(SECOND_NODE)
    unshared = '[{"op": "remove", "path": "/spec/devicePlugin/config"}]'
    node.kubectl("patch", "clusterpolicy", "cluster-policy", "--type=json", "-p", unshared)
    with simulated.attached(node.cluster, "--scenario", str(scenario)):
        until("the second node shows its GPUs", lambda: '"nvidia.com/gpu":"2"' in allocatable(node, "gpu02"))
        node.until_allocatable(4)
        yield node


def allocatable(node: GpuNode, name: str) -> str:
    return node.kubectl("get", "node", name, "-o", "jsonpath={.status.allocatable}")


async def test_walkthrough(two_nodes: GpuNode, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every step goes as it does in the sandbox, though not as fast."""
    monkeypatch.setattr(engine, "PATIENCE", PATIENCE)
    said: list[str] = []

    code = await engine.walk(
        steps.STEPS, kubeconfig=two_nodes.cluster.kubeconfig(), say=said.append, stop=asyncio.Event()
    )

    assert code == 0, "\n".join(map(str, said[-20:]))
