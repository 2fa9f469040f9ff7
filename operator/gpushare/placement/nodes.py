"""One node as the scheduler sees it: its GPUs, and which pod holds what. Kept by the scheduler's books, asked by `fitting`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Self

from gpushare import names
from gpushare.allocation import Topology
from gpushare.domain.fractions import FractionMode
from gpushare.domain.gpunode import AGENT_READY, GPUNode
from gpushare.placement.gpus import GPU, UNUSED, Holding, Use, read_gpus, read_topology


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeState:
    """A node at one moment. A change makes another one, which shares all that has not changed."""

    name: str
    mode: FractionMode | None = None
    """None: the node serves no fractions."""
    is_ready: bool = True
    """Whether its agent is: without it no pod would start."""
    is_settled: bool = True
    """Whether the configuration that it was given is in force: else what it gives out may be over before a pod has come."""
    gpus: tuple[GPU, ...] = ()
    uses: tuple[Use, ...] = ()
    """By position in `gpus`: what all together take."""
    pods: Mapping[str, Holding] = field(default_factory=dict)
    """By uid. What they hold of GPUs that are gone stands here too, and counts again once such a GPU is back."""
    topology: Topology | None = None
    """By positions in `gpus`; None: the agent did not tell."""

    @classmethod
    def of(
        cls,
        node: GPUNode,
        annotations: Mapping[str, str],
        pods: Mapping[str, Holding],
        others: Holding | None = None,
    ) -> Self:
        """The node that a GPUNode and the annotations of its Node describe, with these pods on it.

        `others`: what those hold that are known by their devices only.
        """
        status = node.status
        if status.fractions is None:
            return cls(name=node.name, pods=pods)
        cordoned = frozenset(map(str.strip, annotations.get(names.ANNOTATION_CORDON, "").split(",")))
        gpus = read_gpus(status.devices, status.fractions, cordoned)
        return cls(
            name=node.name,
            mode=status.fractions,
            is_ready=any(
                condition.type == AGENT_READY and condition.status == "True" for condition in status.conditions
            ),
            gpus=gpus,
            uses=tuple(_use_of(gpu, (*pods.values(), others or {})) for gpu in gpus),
            pods=pods,
            topology=read_topology(status.devices, gpus),
        )

    def with_pod(self, uid: str, holding: Holding) -> Self:
        """The node with one pod more; one that is known already now holds this instead."""
        before = self.without_pod(uid)
        uses = tuple(
            use.plus(holding[gpu.uuid]) if gpu.uuid in holding else use
            for gpu, use in zip(before.gpus, before.uses, strict=True)
        )
        return replace(before, uses=uses, pods={**before.pods, uid: holding})

    def without_pod(self, uid: str) -> Self:
        """The node without a pod; the same node where it is not on it."""
        holding = self.pods.get(uid)
        if holding is None:
            return self
        uses = tuple(
            use.minus(holding[gpu.uuid]) if gpu.uuid in holding else use
            for gpu, use in zip(self.gpus, self.uses, strict=True)
        )
        return replace(self, uses=uses, pods={other: held for other, held in self.pods.items() if other != uid})


def _use_of(gpu: GPU, holdings: Iterable[Holding]) -> Use:
    use = UNUSED
    for holding in holdings:
        if gpu.uuid in holding:
            use = use.plus(holding[gpu.uuid])
    return use
