"""The status of a GPUNode from what the agent knows. Pure; `publishing` writes it."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from gpushare.agent import allocations
from gpushare.agent.deciding import Decision
from gpushare.domain import gpunode
from gpushare.domain.conditions import Condition
from gpushare.domain.devices import GPU, Health, Inventory, MigInstance
from gpushare.domain.gpunode import ContainerAllocation, ResourceStatus, Summary
from gpushare.domain.pools import Pool
from gpushare.errors import Problem
from gpushare.kubelet.lifecycle import Standing
from gpushare.kubelet.values import ContainerDevices

MAX_BYTES: Final = 128 * 1024
"""A status longer than that loses the ends of its longest lists; objects of 1.5 MB are refused by the API server."""
_MAX_MESSAGE: Final = 1024
_NOTE_BYTES: Final = 64
"""Room for the note about what was left out of a list."""
_ALLOCATIONS: Final = "allocations"
_SHRINKING: Final = (_ALLOCATIONS, "devices", "problems")
"""Lists that can be long, what is missed least first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """Everything that a status tells, at one moment."""

    decision: Decision
    generation: int | None
    """Of the GPUNode whose configuration was decided on."""
    inventory: Inventory | None
    failure: str
    """Why the driver does not answer; empty when it does."""
    pools: Mapping[str, Pool]
    standings: Mapping[str, Standing]
    waiting: Mapping[str, str] = field(default_factory=dict)
    """Why the shares of a resource are not offered while its MPS daemon does not run; empty where it does."""
    holders: Sequence[ContainerDevices] = ()
    labels: Mapping[str, str] = field(default_factory=dict)


def build_status(facts: Facts) -> dict[str, Any]:
    """The status in the form of the API, at most `MAX_BYTES` long. The times of its conditions are still missing."""
    inventory = facts.inventory or Inventory()
    problems = (*(facts.decision.refusal or facts.decision.notes), *_waiting(facts), *inventory.problems)
    cuda = inventory.cuda_version
    held = allocations.build_allocations(facts.holders, facts.pools, inventory)
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
    if facts.decision.revision is not None:
        status["appliedRevision"] = facts.decision.revision
    return truncated(status)


def build_resources(pools: Mapping[str, Pool], holders: Iterable[ContainerDevices]) -> tuple[ResourceStatus, ...]:
    """What the kubelet is offered, and how much of it is in use."""
    in_use = allocations.count_allocated(holders)
    return tuple(
        ResourceStatus(
            name=name,
            strategy=pool.strategy,
            replicas=pool.replicas,
            total=len(pool.shares),
            healthy=pool.healthy,
            allocated=in_use.get(name, 0),
        )
        for name, pool in sorted(pools.items())
    )


def build_conditions(facts: Facts) -> tuple[Condition, ...]:
    """The agent's three conditions, and a fourth where MPS is used."""
    always = (_config_applied(facts), _devices_ready(facts), _registered(facts))
    return (*always, _mps_ready(facts)) if facts.waiting else always


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


def _config_applied(facts: Facts) -> Condition:
    decision = facts.decision
    applied = decision.revision
    in_force = (
        "the devices are unshared" if applied is None else f"in force: {applied or 'defaults, nothing is shared'}"
    )
    if decision.refusal:
        message = f"{_joined(map(str, decision.refusal))}; {in_force}"
        return _condition(gpunode.CONFIG_APPLIED, facts, "ConfigRefused", message)
    if applied is None:
        return _condition(gpunode.CONFIG_APPLIED, facts, "NoConfig", f"nothing is assigned; {in_force}")
    message = _joined((in_force, *map(str, decision.notes)))
    return _condition(gpunode.CONFIG_APPLIED, facts, "Applied", message, good=True)


def _devices_ready(facts: Facts) -> Condition:
    if facts.inventory is None or facts.failure:
        return _condition(gpunode.DEVICES_READY, facts, "DriverUnavailable", facts.failure or "not asked yet")
    if facts.inventory.problems:
        message = _joined(map(str, facts.inventory.problems))
        return _condition(gpunode.DEVICES_READY, facts, "DeviceUnreadable", message)
    sick = list(_sick(facts.inventory.gpus))
    if sick:
        return _condition(gpunode.DEVICES_READY, facts, "DeviceUnhealthy", _joined(sick))
    message = f"{len(facts.inventory.gpus)} GPUs, driver {facts.inventory.driver_version}"
    return _condition(gpunode.DEVICES_READY, facts, "Ready", message, good=True)


def _sick(gpus: Iterable[GPU]) -> Iterator[str]:
    for gpu in gpus:
        if not gpu.health.healthy:
            yield f"GPU {gpu.index}: {gpu.health.reason}"
        for mig in gpu.mig:
            if not mig.health.healthy:
                yield f"MIG {gpu.index}:{mig.index}: {mig.health.reason}"


def _registered(facts: Facts) -> Condition:
    missing = {name: standing for name, standing in sorted(facts.standings.items()) if not standing.registered}
    if missing:
        message = _joined(f"{name}: {standing.message}" for name, standing in missing.items())
        return _condition(gpunode.REGISTERED, facts, "NotRegistered", message)
    message = f"the kubelet knows {', '.join(sorted(facts.standings)) or 'nothing yet'}"
    return _condition(gpunode.REGISTERED, facts, "Registered", message, good=True)


def _mps_ready(facts: Facts) -> Condition:
    waiting = [problem.message for problem in _waiting(facts)]
    if waiting:
        return _condition(gpunode.MPS_READY, facts, "WaitingForMps", _joined(waiting))
    message = f"MPS daemons run for {', '.join(sorted(facts.waiting))}"
    return _condition(gpunode.MPS_READY, facts, "Ready", message, good=True)


def _waiting(facts: Facts) -> tuple[Problem, ...]:
    return tuple(
        Problem(path="sharing.mps", message=f"the shares of {name} are not offered: {reason}")
        for name, reason in sorted(facts.waiting.items())
        if reason
    )


def _condition(type_: str, facts: Facts, reason: str, message: str, *, good: bool = False) -> Condition:
    return Condition(
        type=type_,
        status="True" if good else "False",
        reason=reason,
        message=message,
        observed_generation=facts.generation,
    )


def _joined(texts: Iterable[str]) -> str:
    text = "; ".join(texts)
    return text if len(text) <= _MAX_MESSAGE else text[: _MAX_MESSAGE - 3] + "..."


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
    return container
