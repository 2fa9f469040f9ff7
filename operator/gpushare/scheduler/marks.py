"""The annotations of a Binding, which become the pod's: our decision, and what tools of HAMi and Alibaba read. For `binding`.

Only the decision is ever read by us. The others are for `kubectl inspect`, dashboards and exporters that know those systems.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator

from gpushare import names
from gpushare.domain.fractions import Decision, Dialect
from gpushare.domain.manifests import Manifest
from gpushare.placement.counting import holding_of
from gpushare.placement.gpus import Holding
from gpushare.placement.nodes import NodeState
from gpushare.scheduler.books import Placed


def build(placed: Placed, pod: Manifest, node: NodeState) -> dict[str, str]:
    """All annotations for a pod that was just decided about."""
    decision = placed.decision
    assert decision is not None
    at = time.time_ns()
    marks = {names.ANNOTATION_DECISION: decision.to_annotation()}
    if decision.dialect is Dialect.HAMI:
        return marks | _build_hami(decision, pod, node.name, at)
    return marks | _build_aliyun(decision, pod, node, holding_of(decision.containers, placed.kinds), at)


def _build_hami(decision: Decision, pod: Manifest, node: str, at: int) -> dict[str, str]:
    """Same form as HAMi's: `UUID,TYPE,MiB,percent:` for each GPU, `;` after each container, init containers first."""
    devices = (
        "".join(f"{grant.uuid},NVIDIA,{grant.memory_mib},{grant.cores}:" for grant in decision.containers.get(name, ()))
        for name in _container_names(pod)
    )
    return {
        names.ANNOTATION_HAMI_NODE: node,
        names.ANNOTATION_HAMI_TIME: str(at // 1_000_000_000),
        names.ANNOTATION_HAMI_DEVICES: "".join(f"{text};" for text in devices),
    }


def _build_aliyun(decision: Decision, pod: Manifest, node: NodeState, held: Holding, at: int) -> dict[str, str]:
    """Same names as those of Alibaba's extender; for several GPUs the JSON of its managed edition, which has no index.

    `held`: what the pod takes at its busiest moment: init containers take nothing beside those that come after them.
    """
    assert node.mode is not None
    indexes = {gpu.uuid: gpu.index for gpu in node.gpus}
    first = next(gpu for gpu in node.gpus if gpu.uuid in held)
    marks = {
        names.ANNOTATION_ALIYUN_POD: str(sum(use.memory_mib for use in held.values()) // node.mode.unit_mib),
        names.ANNOTATION_ALIYUN_DEV: str(first.traits.memory_mib // node.mode.unit_mib),
        # Their device plugin takes pods with "false" for its own, and turns it to "true"; here the kubelet's ids decide.
        names.ANNOTATION_ALIYUN_ASSIGNED: "true",
        names.ANNOTATION_ALIYUN_TIME: str(at),
    }
    if len(held) == 1:
        return marks | {names.ANNOTATION_ALIYUN_INDEX: str(first.index)}
    allocation = {
        str(position): {str(indexes[grant.uuid]): grant.units for grant in decision.containers[name]}
        for position, name in enumerate(_container_names(pod))
        if name in decision.containers
    }
    return marks | {names.ANNOTATION_ALIYUN_ALLOCATION: json.dumps(allocation, separators=(",", ":"))}


def _container_names(pod: Manifest) -> Iterator[str]:
    spec = pod["spec"]
    for container in (*(spec.get("initContainers") or ()), *spec["containers"]):
        yield str(container["name"])
