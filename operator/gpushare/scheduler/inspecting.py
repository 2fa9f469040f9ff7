"""Who holds what of which GPU, as JSON in the form of Alibaba's extender. Used by `answering`."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from gpushare.domain.fractions import Dialect
from gpushare.placement.nodes import NodeState
from gpushare.scheduler.books import Books


def build_inspection(books: Books, name: str = "") -> bytes:
    """All nodes that serve fractions, or the one named, by name; amounts in the unit of the node.

    Same keys as `/gpushare-scheduler/inspect` of Alibaba's extender, and `unitMiB` and `dialect` besides, as nodes differ.
    """
    nodes = [node for node in books.nodes.values() if node.mode is not None and name in {"", node.name}]
    error = f"no node {name} that serves fractions of GPUs" if name and not nodes else ""
    body = {"nodes": list(_describe(books, sorted(nodes, key=lambda node: node.name))), "error": error}
    return json.dumps(body, separators=(",", ":")).encode()


def _describe(books: Books, nodes: Iterable[NodeState]) -> Iterable[dict[str, Any]]:
    for node in nodes:
        assert node.mode is not None
        unit = node.mode.unit_mib if node.mode.dialect is Dialect.ALIYUN else 1
        devices = [_describe_gpu(books, node, position, unit) for position in range(len(node.gpus))]
        yield {
            "name": node.name,
            "totalGPU": sum(device["totalGPU"] for device in devices),
            "usedGPU": sum(device["usedGPU"] for device in devices),
            "unitMiB": unit,
            "dialect": node.mode.dialect.value,
            "devs": devices,
        }


def _describe_gpu(books: Books, node: NodeState, position: int, unit: int) -> dict[str, Any]:
    gpu = node.gpus[position]
    held = {uid: holding[gpu.uuid] for uid, holding in node.pods.items() if gpu.uuid in holding}
    pods = sorted(
        (books.pods[uid].namespace, books.pods[uid].name, use.memory_mib // unit) for uid, use in held.items()
    )
    return {
        "id": gpu.index,
        "uuid": gpu.uuid,
        "totalGPU": gpu.traits.memory_mib // unit,
        "usedGPU": node.uses[position].memory_mib // unit,
        "pods": [{"name": name, "namespace": namespace, "usedGPU": used} for namespace, name, used in pods],
    }
