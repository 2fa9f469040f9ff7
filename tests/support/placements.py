"""Nodes and pods for the tests of `placement`, with only what a test is about said."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from gpushare.domain.conditions import Condition
from gpushare.domain.fractions import Dialect, FractionMode
from gpushare.domain.gpunode import AGENT_READY, GPUNode, GPUNodeStatus
from gpushare.placement.fitting import Fit
from gpushare.placement.gpus import Holding, Use
from gpushare.placement.nodes import NodeState
from gpushare.placement.requests import read_request
from gpushare.placement.settings import RequestSettings
from gpushare.placement.shapes import PodRequest

HAMI = FractionMode(dialect=Dialect.HAMI)
ALIYUN = FractionMode(dialect=Dialect.ALIYUN)
SETTINGS = RequestSettings()
Resources = Mapping[str, Any]


def device(index: int, memory: int = 15360, node: str = "", **fields: Any) -> dict[str, Any]:
    """One item of `status.devices`; UUIDs are `GPU-0`, `GPU-1`, ..., after the name of the node where there is one."""
    return {
        "index": index,
        "uuid": f"GPU-{node}{'-' if node else ''}{index}",
        "product": "Tesla T4",
        "memoryMiB": memory,
        "health": {"healthy": True},
        **fields,
    }


def node_of(
    devices: Sequence[Mapping[str, Any]],
    mode: FractionMode | None = HAMI,
    *,
    name: str = "node",
    annotations: Mapping[str, str] | None = None,
    pods: Mapping[str, Holding] | None = None,
    ready: str = "True",
) -> NodeState:
    """A node with these devices, whose agent is ready."""
    condition = Condition(type=AGENT_READY, status=ready, reason="Test")
    status = GPUNodeStatus(devices=tuple(devices), fractions=mode, conditions=(condition,))
    return NodeState.of(GPUNode(name=name, status=status), annotations or {}, pods or {})


def alike(count: int, memory: int = 15360, mode: FractionMode | None = HAMI, name: str = "node") -> NodeState:
    """A node whose GPUs are all the same, with UUIDs that no other node has."""
    return node_of([device(index, memory, name) for index in range(count)], mode, name=name)


def used(**uses: Use) -> dict[str, dict[str, Use]]:
    """Pods, one for each GPU that is named by its number: `gpu0=Use(...)`."""
    return {f"pod-{name}": {f"GPU-{name.removeprefix('gpu')}": use} for name, use in uses.items()}


def gpus_of(found: Fit) -> list[list[str]]:
    """The GPUs of each container, by UUID; it must fit."""
    assert found.containers is not None, found.message
    return [[grant.uuid for grant in grants] for grants in found.containers.values()]


def container(
    name: str = "main", *, sidecar: bool = False, requests: Resources | None = None, **_: Any
) -> dict[str, Any]:
    """A container without resources, or with some that are only requested."""
    body: dict[str, Any] = {"name": name, "resources": {"requests": dict(requests or {})}}
    if sidecar:
        body["restartPolicy"] = "Always"
    return body


def hami(
    name: str = "main", gpus: Any = None, *, mem: Any = None, percent: Any = None, cores: Any = None, **more: Any
) -> dict[str, Any]:
    """A container in HAMi's dialect; what is None is not written."""
    amounts = {
        "nvidia.com/gpu": gpus,
        "nvidia.com/gpumem": mem,
        "nvidia.com/gpumem-percentage": percent,
        "nvidia.com/gpucores": cores,
    }
    return _limited(name, amounts, **more)


def aliyun(name: str = "main", units: Any = None, *, cores: Any = None, **more: Any) -> dict[str, Any]:
    """A container in Alibaba's dialect."""
    return _limited(name, {"aliyun.com/gpu-mem": units, "aliyun.com/gpu-core.percentage": cores}, **more)


def pod_of(
    *containers: Mapping[str, Any],
    init: Sequence[Mapping[str, Any]] = (),
    annotations: Mapping[str, str] | None = None,
    labels: Mapping[str, str] | None = None,
) -> dict[str, Any]:
    """A pod with these containers."""
    return {
        "metadata": {"name": "pod", "annotations": dict(annotations or {}), "labels": dict(labels or {})},
        "spec": {"initContainers": list(init), "containers": list(containers)},
    }


def request_of(*containers: Mapping[str, Any], settings: RequestSettings = SETTINGS, **pod: Any) -> PodRequest:
    """What such a pod asks for; it must be without a problem."""
    read = read_request(pod_of(*containers, **pod), settings)
    assert read.problems == ()
    assert read.request is not None
    return read.request


def _limited(name: str, amounts: Mapping[str, Any], **more: Any) -> dict[str, Any]:
    body = container(name, **more)
    body["resources"]["limits"] = {resource: str(value) for resource, value in amounts.items() if value is not None}
    return body
