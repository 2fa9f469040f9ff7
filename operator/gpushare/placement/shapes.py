"""What a pod asks for, as values, whichever dialect it was written in. Made by `requests`, placed by `fitting`."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property
from typing import Final, NamedTuple

from gpushare.domain.fractions import Dialect, Placement
from gpushare.domain.manifests import Manifest

WHOLE: Final = 100
"""Percent of compute by which a container says that it wants a GPU alone."""


class Kind(StrEnum):
    """When a container runs, which decides how the kubelet counts it."""

    INIT = "init"
    """Before the others, and then gone: those after it get its shares again."""
    SIDECAR = "sidecar"
    """An init container that is always restarted: holds its shares beside all that start later."""
    APP = "app"


class Policy(StrEnum):
    """One word of what decides between the GPUs of a node."""

    BINPACK = "binpack"
    SPREAD = "spread"
    NUMA = "numa"
    MUTEX = "mutex"
    """Only GPUs that nobody uses."""
    TOPOLOGY = "topology-aware"


class Weights(NamedTuple):
    """How much the use of slots, compute and memory counts in scores."""

    slot: int = 1
    core: int = 1
    memory: int = 1


EVEN: Final = Weights()


@dataclass(frozen=True, slots=True, kw_only=True)
class ContainerRequest:
    """What one container asks for. Everything is meant for each of its GPUs."""

    name: str
    kind: Kind = Kind.APP
    gpus: int = 1
    """Different physical ones."""
    memory_mib: int = 0
    """0: by percent or units."""
    memory_percent: int = 0
    """Of the memory that a GPU gives out; 100: all of it."""
    units: int = 0
    """Of `aliyun.com/gpu-mem`; how large one is, the node says."""
    cores: int = 0
    """Percent of compute; 100: the GPU alone; 0: no limit and nothing reserved."""
    priority: int | None = None
    """0: high, 1: low. Nothing is placed by it."""

    @property
    def tuple_of(self) -> tuple[int, ...]:
        """All that the container gets by. Who has the same gets the same."""
        return (self.gpus, self.memory_mib, self.memory_percent, self.units, self.cores)


@dataclass(frozen=True, slots=True, kw_only=True)
class Constraints:
    """Which GPUs come into question."""

    use_models: tuple[str, ...] = ()
    """Lower case; parts of the model's name, one of which must be in it. Empty: any."""
    avoid_models: tuple[str, ...] = ()
    use_uuids: tuple[str, ...] = ()
    """Empty: any."""
    avoid_uuids: tuple[str, ...] = ()
    numa_bind: bool = False
    """All GPUs of a container on one NUMA node."""
    tier: str = ""
    """A text that names the isolation of the node; empty: any."""


class _Most(NamedTuple):
    """The most of one thing that a pod needs at any moment."""

    staying: int = 0
    most: int = 0

    def plus(self, kind: Kind, amount: int) -> _Most:
        """With one container more."""
        together = self.staying + amount
        return _Most(self.staying if kind is Kind.INIT else together, max(self.most, together))


@dataclass(frozen=True, kw_only=True)
class PodRequest:
    """What one pod asks for. Not slotted, as its shape is kept once it is known."""

    dialect: Dialect
    containers: tuple[ContainerRequest, ...]
    """In the order in which the kubelet allocates: init containers first. Only those that ask for GPUs."""
    constraints: Constraints = Constraints()
    node_policy: Placement = Placement.BINPACK
    gpu_policy: tuple[Policy, ...] = ()
    """Words in the order of their weight; empty: the node's placement."""
    weights: Weights = EVEN

    @cached_property
    def shape(self) -> str:
        """12 hex digits that are the same for all pods that may be taken for each other, whatever their containers are called."""
        containers = [(container.kind.value, *container.tuple_of) for container in self.containers]
        limits = self.constraints
        text = repr(
            (
                self.dialect.value,
                containers,
                (limits.use_models, limits.avoid_models, limits.use_uuids, limits.avoid_uuids),
                (limits.numa_bind, limits.tier, self.node_policy.value, self.gpu_policy, self.weights),
            )
        )
        return hashlib.sha256(text.encode()).hexdigest()[:12]

    @property
    def is_uniform(self) -> bool:
        """Whether all containers ask for the same, so that pods of this shape may be on their way to a node together."""
        return len({container.tuple_of for container in self.containers}) == 1

    @property
    def takes_last(self) -> bool:
        """Which of equally good GPUs is taken: the last one by HAMi, the first one by Alibaba's scheduler."""
        return self.dialect is Dialect.HAMI

    @cached_property
    def most_gpus(self) -> int:
        """GPUs of the container that asks for most of them."""
        return max(container.gpus for container in self.containers)

    @cached_property
    def is_simple(self) -> bool:
        """Whether it comes down to one container on one GPU, so that each GPU can be judged for itself."""
        return len(self.steps) == 1 and self.steps[0].gpus == 1 and Policy.TOPOLOGY not in self.gpu_policy

    @property
    def is_on_same_gpus(self) -> bool:
        """Whether all containers of the pod share the same GPUs, as Alibaba's scheduler has it."""
        return self.dialect is Dialect.ALIYUN

    @cached_property
    def steps(self) -> tuple[ContainerRequest, ...]:
        """What is placed one after the other: the containers, or all of them as one."""
        if not self.is_on_same_gpus:
            return self.containers
        units = _Most()
        cores = _Most()
        for container in self.containers:
            units = units.plus(container.kind, container.units)
            cores = cores.plus(container.kind, container.cores)
        return (ContainerRequest(name="", gpus=self.most_gpus, units=units.most, cores=cores.most),)

    @property
    def is_charged(self) -> bool:
        """Whether quotas on `nvidia.com/gpumem` and `gpucores` concern it, which are HAMi's words."""
        return self.dialect is Dialect.HAMI

    @property
    def named_uuids(self) -> tuple[str, ...]:
        """GPUs for which the answer differs from that of others that look the same."""
        return self.constraints.use_uuids + self.constraints.avoid_uuids


def kinds_of(pod: Manifest) -> dict[str, Kind]:
    """Every container of a pod by name, in the order in which the kubelet allocates."""
    spec = pod.get("spec", {})
    kinds = {
        container.get("name", ""): Kind.SIDECAR if container.get("restartPolicy") == "Always" else Kind.INIT
        for container in spec.get("initContainers") or ()
    }
    return kinds | {container.get("name", ""): Kind.APP for container in spec.get("containers") or ()}
