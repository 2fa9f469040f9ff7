"""Nodes that do not exist yet, as cluster autoscalers imagine them: whole Node objects, of which no agent has told anything.

Used by `deciding`. What such a node will give out is read off its capacity and the labels of its GPUs, which autoscalers take
over from a node of the same group, or from what an administrator wrote down for a group without nodes.
"""

from __future__ import annotations

from collections.abc import Mapping

from gpushare import names
from gpushare.domain.amounts import count_of
from gpushare.domain.conditions import Condition
from gpushare.domain.fractions import Dialect, FractionMode
from gpushare.domain.gpunode import AGENT_READY, GPUNode, GPUNodeStatus
from gpushare.domain.manifests import Manifest
from gpushare.placement.nodes import NodeState

_READY = Condition(type=AGENT_READY, status="True", reason="Imagined")


def read_node(node: Manifest) -> NodeState | None:
    """The node as a first pod will find it; None where nothing says that it serves fractions."""
    metadata, capacity = node["metadata"], (node.get("status") or {}).get("allocatable") or {}
    labels: Mapping[str, str] = metadata.get("labels") or {}
    units, gpus = (count_of(capacity.get(name, 0)) for name in (names.RESOURCE_ALIYUN_MEM, names.RESOURCE_ALIYUN_COUNT))
    slots = count_of(capacity.get(names.RESOURCE_GPU, 0))
    count, memory = (count_of(labels.get(name, 0)) for name in (names.LABEL_GPU_COUNT, names.LABEL_GPU_MEMORY))
    if units and gpus:
        # Without a unit nobody can tell how large it is; a GiB is what it is unless an administrator has said otherwise.
        mode = FractionMode(dialect=Dialect.ALIYUN)
        count, memory = gpus, units // gpus * mode.unit_mib
    elif slots > count > 0 and memory:
        mode = FractionMode(dialect=Dialect.HAMI, slots=slots // count)
    else:
        return None
    device = {
        "product": labels.get(names.LABEL_PRODUCT, ""),
        "memoryMiB": memory,
        "health": {"healthy": True},
    }
    devices = tuple({**device, "index": index, "uuid": f"{metadata['name']}-{index}"} for index in range(count))
    status = GPUNodeStatus(fractions=mode, devices=devices, conditions=(_READY,))
    return NodeState.of(GPUNode(name=metadata["name"], status=status), metadata.get("annotations") or {}, {})
