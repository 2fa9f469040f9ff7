"""What pods hold of GPUs, by what the kubelets gave out, by what agents say, and by the books of the scheduler."""

from __future__ import annotations

import asyncio
import json
import ssl
from base64 import b64decode
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from typing import TypeAlias

from gpushare import names
from gpushare.domain import manifests
from gpushare.domain.fractions import Decision, Dialect, Grant
from gpushare.domain.manifests import Manifest
from gpushare.domain.shares import ShareId
from gpushare.errors import ClusterUnavailable
from gpushare.kube.cluster import Cluster
from gpushare.kube.http import Address, Connection
from gpushare.kubelet.podresources import read_holders
from gpushare.kubelet.values import CallFailed, ContainerDevices
from gpushare.sandbox.apiserver.objects.services import address_of
from gpushare.sandbox.node.nodes import SimulatedNode
from gpushare.sandbox.node.plugins import POD_RESOURCES
from support.clusters import NAMESPACE

Amount: TypeAlias = tuple[int, int, int]
"""MiB, percent of compute, and slots or units."""
Ledger: TypeAlias = dict[str, dict[str, Amount]]
"""By UUID of the GPU and name of the pod."""
UNIT_MIB = 1024
_RESOURCES = {Dialect.HAMI: names.RESOURCE_GPU, Dialect.ALIYUN: names.RESOURCE_ALIYUN_MEM}


async def read_held(node: SimulatedNode) -> tuple[ContainerDevices, ...]:
    """What a kubelet says that containers hold; nothing while it restarts."""
    try:
        return await asyncio.to_thread(read_holders, node.root / POD_RESOURCES)
    except CallFailed:
        return ()


def by_kubelet(holders: Iterable[ContainerDevices], pods: Mapping[str, Manifest], *, with_inits: bool = True) -> Ledger:
    """By the ids that the kubelet gave out, which name the GPUs; what an id of HAMi's dialect is worth stands in the decision.

    Of init containers it does not tell: `with_inits`: their part counts on the GPUs of the others, which get their devices.
    """
    ledger = _empty()
    for holder in holders:
        decision = decision_of(pods[holder.pod]) if holder.pod in pods else None
        if decision is None or holder.resource != _RESOURCES[decision.dialect]:
            continue
        for uuid, count in Counter(ShareId.parse(id_).device for id_ in holder.ids).items():
            amount = _worth(decision.dialect, decision.containers[holder.container], count)
            _add(ledger, uuid, holder.pod, amount)
    for of_gpu in ledger.values() if with_inits else ():
        for pod, amount in of_gpu.items():
            of_gpu[pod] = _most(amount, _first_of(pods[pod]))
    return dict(ledger)


def by_agents(gpu_nodes: Iterable[Manifest]) -> Ledger:
    """By `status.allocations`, which tell neither of slots nor of units."""
    ledger = _empty()
    for gpu_node in gpu_nodes:
        uuids = {device["index"]: device["uuid"] for device in gpu_node["status"]["devices"]}
        for gpu in gpu_node["status"].get("allocations", ()):
            for held in gpu["containers"]:
                _add(ledger, uuids[gpu["index"]], held["pod"], (held.get("memoryMiB", 0), held.get("cores", 0), 0))
    return dict(ledger)


async def by_scheduler(cluster: Cluster) -> dict[str, dict[str, int]] | None:
    """MiB by GPU and pod, as the inspect endpoint says; None where nobody answers."""
    secret = await cluster.get(manifests.SECRET, names.SECRET_SCHEDULER, NAMESPACE)
    service = await cluster.get(manifests.SERVICE, names.SCHEDULER, NAMESPACE)
    pods = await cluster.list(manifests.POD, NAMESPACE, labels=f"app={names.SCHEDULER}")
    address = address_of(service, 443, pods.items) if service else None
    if secret is None or address is None:
        return None
    context = ssl.create_default_context(cadata=b64decode(secret["data"]["ca.crt"]).decode())
    try:
        connection = await Connection.open(Address.parse(f"https://{address}", context, names.SCHEDULER))
        try:
            await connection.request("GET", "/inspect", [("Host", names.SCHEDULER)], b"")
            nodes = json.loads(await connection.body())["nodes"]
        finally:
            await connection.close()
    except (ClusterUnavailable, OSError):
        return None
    return {
        gpu["uuid"]: {pod["name"]: pod["usedGPU"] * node["unitMiB"] for pod in gpu["pods"]}
        for node in nodes
        for gpu in node["devs"]
        if gpu["pods"]
    }


def decision_of(pod: Manifest) -> Decision | None:
    """What the scheduler decided for a pod."""
    text = pod["metadata"].get("annotations", {}).get(names.ANNOTATION_DECISION)
    return Decision.from_annotation(text) if text else None


def totals(ledger: Ledger) -> dict[str, Amount]:
    """By GPU."""
    found = {}
    for uuid, of_gpu in ledger.items():
        memory, cores, slots = zip(*of_gpu.values(), strict=True)
        found[uuid] = sum(memory), sum(cores), sum(slots)
    return found


def without_slots(ledger: Ledger) -> Ledger:
    """Memory and compute alone."""
    return {uuid: {pod: (*amount[:2], 0) for pod, amount in of_gpu.items()} for uuid, of_gpu in ledger.items()}


def memory_of(ledger: Ledger) -> dict[str, dict[str, int]]:
    """The memory alone."""
    return {uuid: {pod: amount[0] for pod, amount in of_gpu.items()} for uuid, of_gpu in ledger.items()}


def _worth(dialect: Dialect, grants: tuple[Grant, ...], count: int) -> Amount:
    # All GPUs of a container give it the same; the kubelet may have taken others of the same kind than were decided.
    (memory, cores) = {(grant.memory_mib, grant.cores) for grant in grants}.pop()
    return (count * UNIT_MIB if dialect is Dialect.ALIYUN else memory, cores, count)


def _first_of(pod: Manifest) -> Amount:
    """What its init containers have, one after the other, of a GPU."""
    decision, most = decision_of(pod), (0, 0, 0)
    for container in pod["spec"].get("initContainers") or ():
        for grant in decision.containers[container["name"]] if decision else ():
            most = _most(most, (grant.memory_mib, grant.cores, grant.units or 1))
    return most


def _empty() -> defaultdict[str, dict[str, Amount]]:
    return defaultdict(dict)


def _add(ledger: dict[str, dict[str, Amount]], uuid: str, pod: str, more: Amount) -> None:
    memory, cores, slots = ledger[uuid].get(pod, (0, 0, 0))
    ledger[uuid][pod] = memory + more[0], cores + more[1], slots + more[2]


def _most(one: Amount, other: Amount) -> Amount:
    return max(one[0], other[0]), max(one[1], other[1]), max(one[2], other[2])
