"""The status of a GPUNode from what the agent knows. Pure; `publishing` writes it."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from gpushare.agent import allocations
from gpushare.agent.closeness import with_closeness
from gpushare.agent.conditions import build_conditions
from gpushare.agent.facts import Facts, build_resources, find_overuse, find_waiting
from gpushare.domain.devices import GPU, Health, Inventory, MigInstance
from gpushare.domain.gpunode import ContainerAllocation, Summary

MAX_BYTES: Final = 128 * 1024
"""A status longer than that loses the ends of its longest lists; objects of 1.5 MB are refused by the API server."""
_NOTE_BYTES: Final = 64
"""Room for the note about what was left out of a list."""
_ALLOCATIONS: Final = "allocations"
_SHRINKING: Final = (_ALLOCATIONS, "devices", "problems")
"""Lists that can be long, what is missed least first."""


def build_status(facts: Facts) -> dict[str, Any]:
    """The status in the form of the API, at most `MAX_BYTES` long. The times of its conditions are still missing."""
    inventory = facts.inventory or Inventory()
    problems = (
        *(facts.decision.refusal or facts.decision.notes),
        *find_overuse(facts),
        *find_waiting(facts),
        *inventory.problems,
        *facts.link_problems,
    )
    cuda = inventory.cuda_version
    held = facts.reported
    if held is None:
        held = allocations.build_allocations(facts.holders, facts.pools, inventory, facts.fractions)
    status: dict[str, Any] = {
        "summary": Summary(
            gpus=len(inventory.gpus),
            shares=sum(len(pool.shares) for pool in facts.pools.values()),
            healthy=sum(pool.healthy for pool in facts.pools.values()),
        ).to_json(),
        "problems": [{"path": problem.path, "message": problem.message} for problem in problems],
        "driverVersion": inventory.driver_version,
        "cudaVersion": f"{cuda[0]}.{cuda[1]}" if cuda is not None else "",
        "devices": list(map(_device, inventory.gpus)),
        "resources": [resource.to_json() for resource in build_resources(facts.pools, facts.holders)],
        "labels": dict(facts.labels),
        _ALLOCATIONS: _regrouped((one.gpu_index, _holder(one)) for one in held),
        "conditions": [condition.to_json() for condition in build_conditions(facts)],
    }
    if facts.decision.fractions is not None:
        status["fractions"] = facts.decision.fractions.to_json()
        status["devices"] = with_closeness(status["devices"], facts.topology)
    if facts.decision.revision is not None:
        status["appliedRevision"] = facts.decision.revision
    return truncated(status)


def truncated(status: dict[str, Any], limit: int = MAX_BYTES) -> dict[str, Any]:
    """The status, shortened at the ends of lists where it is too long, with the number of items left out."""
    left_out: dict[str, int] = {}
    for name in _SHRINKING:
        surplus = _bytes(status) - limit
        if surplus <= 0:
            break
        flat = _flattened(status[name]) if name == _ALLOCATIONS else status[name]
        sizes = [_bytes(item[1] if name == _ALLOCATIONS else item) + 1 for item in flat]
        kept = _fitting(sizes, sum(sizes) - surplus - _NOTE_BYTES)
        left_out[name] = len(flat) - kept
        items = _regrouped(flat[:kept]) if name == _ALLOCATIONS else flat[:kept]
        status = {**status, name: items, "truncated": dict(left_out)}
    return status


def _fitting(sizes: Sequence[int], room: int) -> int:
    """How many items from the front fit."""
    for count, size in enumerate(sizes):
        room -= size
        if room < 0:
            return count
    return len(sizes)


def _flattened(groups: Sequence[Mapping[str, Any]]) -> list[tuple[int, dict[str, Any]]]:
    return [(group["index"], container) for group in groups for container in group["containers"]]


def _regrouped(held: Iterable[tuple[int, dict[str, Any]]]) -> list[dict[str, Any]]:
    by_gpu: dict[int, list[dict[str, Any]]] = {}
    for index, container in held:
        by_gpu.setdefault(index, []).append(container)
    return [{"index": index, "containers": containers} for index, containers in by_gpu.items()]


def _bytes(value: Any) -> int:
    return len(json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode())


def _device(gpu: GPU) -> dict[str, Any]:
    body: dict[str, Any] = {
        "index": gpu.index,
        "uuid": gpu.uuid,
        "product": gpu.product,
        "memoryMiB": gpu.memory_mib,
        "computeCapability": str(gpu.compute_capability),
        "busId": gpu.bus_id,
        "health": _health(gpu.health),
    }
    if gpu.numa_node is not None:
        body["numaNode"] = gpu.numa_node
    if gpu.mig_capable:
        body["migEnabled"] = gpu.mig_enabled
    if gpu.mig:
        body["mig"] = list(map(_instance, gpu.mig))
    return body


def _instance(mig: MigInstance) -> dict[str, Any]:
    return {
        "index": mig.index,
        "uuid": mig.uuid,
        "profile": mig.profile,
        "memoryMiB": mig.memory_mib,
        "health": _health(mig.health),
    }


def _health(health: Health) -> dict[str, Any]:
    if health.healthy:
        return {"healthy": True}
    return {"healthy": False, "reason": health.reason, "since": health.since}


def _holder(allocation: ContainerAllocation) -> dict[str, Any]:
    container: dict[str, Any] = {
        "namespace": allocation.namespace,
        "pod": allocation.pod,
        "container": allocation.container,
        "resource": allocation.resource,
    }
    if allocation.shares:
        container["shares"] = list(allocation.shares)
    known = {"podUID": allocation.pod_uid, "memoryMiB": allocation.memory_mib, "cores": allocation.cores}
    container |= {key: value for key, value in known.items() if value}
    return container
