"""Which GPU is held by whom: all GPUs of all nodes, shared in whichever way. Called by `gpushare top` and `explain`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from gpushare import names
from gpushare.domain.gpunode import ContainerAllocation, GPUNode
from gpushare.views.tables import build_table


def build_text(nodes: Iterable[GPUNode]) -> str:
    """A row a holder; a GPU that nobody holds has one too."""
    rows = [row for node in nodes for device in node.status.devices for row in _rows(node, device)]
    if not rows:
        return "No GPUs: no agent has told of any."
    return build_table(["NODE", "GPU", "PRODUCT", "MEMORY", "HEALTH", "HELD BY", "PART"], rows)


def build_document(nodes: Iterable[GPUNode]) -> Mapping[str, Any]:
    """The same for programs."""
    return {
        "gpus": [
            {
                "node": node.name,
                "index": device["index"],
                "uuid": device["uuid"],
                "product": device.get("product", ""),
                "memoryMiB": device.get("memoryMiB", 0),
                "healthy": bool((device.get("health") or {}).get("healthy", True)),
                "holders": [_holder(held) for held in _held(node, device)],
            }
            for node in nodes
            for device in node.status.devices
        ]
    }


def list_parts(node: GPUNode) -> list[str]:
    """Who holds what on one node, a sentence each."""
    return [
        f"{each.namespace}/{each.pod} ({each.container}): {_part_on(device, each)}"
        for device in node.status.devices
        for each in _held(node, device)
    ]


def list_parts_of(node: GPUNode, namespace: str, pod: str) -> list[str]:
    """What the containers of one pod hold of the node's GPUs, a sentence each."""
    return [
        f"{each.container}: {_part_on(device, each)}"
        for device in node.status.devices
        for each in _held(node, device)
        if (each.namespace, each.pod) == (namespace, pod)
    ]


def _rows(node: GPUNode, device: Mapping[str, Any]) -> Iterator[list[str]]:
    held = list(_held(node, device))
    limited = sum(each.memory_mib for each in held)
    memory = int(device.get("memoryMiB") or 0)
    first = [
        node.name,
        str(device["index"]),
        str(device.get("product", "")),
        f"{limited}/{memory} MiB" if node.status.fractions else f"{memory} MiB",
        _health_of(device),
    ]
    for each in held:
        yield [*first, f"{each.namespace}/{each.pod} ({each.container})", _part_of(each)]
        first = [""] * len(first)
    if not held:
        yield [*first, "-", "-"]


def _held(node: GPUNode, device: Mapping[str, Any]) -> Iterator[ContainerAllocation]:
    mine = (each for each in node.status.allocations if each.gpu_index == device["index"])
    return iter(sorted(mine, key=lambda each: (each.namespace, each.pod, each.container, each.resource)))


def _part_on(device: Mapping[str, Any], held: ContainerAllocation) -> str:
    return f"{_part_of(held)}, GPU {device['index']}"


def _part_of(held: ContainerAllocation) -> str:
    """What of the GPU it is: memory and compute where they are limited, else shares, else all of it.

    Of units of memory that a node gave out before it changed over, nobody knows any more how large they are.
    """
    parts = [f"{held.memory_mib} MiB"] if held.memory_mib else []
    parts += [f"{held.cores} %"] if held.cores else []
    if not parts and held.shares:
        parts = [f"{len(held.shares)} share{'s' if len(held.shares) > 1 else ''}"]
    whole = "units" if held.resource == names.RESOURCE_ALIYUN_MEM else "whole"
    return f"{', '.join(parts) or whole} of {held.resource}"


def _holder(held: ContainerAllocation) -> Mapping[str, Any]:
    return {
        "namespace": held.namespace,
        "pod": held.pod,
        "container": held.container,
        "resource": held.resource,
        "shares": list(held.shares),
        "memoryMiB": held.memory_mib,
        "cores": held.cores,
    }


def _health_of(device: Mapping[str, Any]) -> str:
    health = device.get("health") or {}
    return "well" if health.get("healthy", True) else str(health.get("reason") or "sick")
