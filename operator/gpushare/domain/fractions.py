"""Fractions of GPUs as plain values: how a node serves them, what a pod was given. Written by the scheduler, read by the agent.

A fraction is memory and compute of one GPU, whichever dialect it was asked for in; a share (`shares`) is what the kubelet
knows of it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Final

DEFAULT_SLOTS: Final = 10
"""Containers a GPU, as in HAMi's chart."""


class Dialect(StrEnum):
    """In whose words pods ask for fractions on a node."""

    HAMI = "hami"
    ALIYUN = "aliyun"


class Isolation(StrEnum):
    """What holds a container to its fraction."""

    NONE = "none"
    """Nothing: fractions are only counted."""
    MPS = "mps"
    HAMI_CORE = "hami-core"
    MIG = "mig"
    EXCLUSIVE = "exclusive"


class Placement(StrEnum):
    """Which GPU of a node is taken first."""

    BINPACK = "binpack"
    SPREAD = "spread"


@dataclass(frozen=True, slots=True, kw_only=True)
class FractionMode:
    """How a node serves fractions. Part of its configuration, and repeated in the status of its GPUNode once in force."""

    dialect: Dialect
    slots: int = DEFAULT_SLOTS
    """Containers a GPU takes at most, in the dialect of HAMi: the shares that the kubelet is shown."""
    unit_mib: int = 1024
    """MiB of one `aliyun.com/gpu-mem`."""
    placement: Placement = Placement.BINPACK
    isolation: Isolation = Isolation.NONE
    compute: bool = True
    """Whether pods may ask for a percentage of compute."""
    memory_scaling: float = 1.0
    """Memory given out for each MiB that there is; above 1 an administrator has allowed over-commitment."""
    core_scaling: float = 1.0
    """The same of compute."""

    def to_json(self) -> dict[str, Any]:
        """The form of `status.fractions`."""
        return {
            "dialect": self.dialect.value,
            "slots": self.slots,
            "unitMiB": self.unit_mib,
            "placement": self.placement.value,
            "isolation": self.isolation.value,
            "compute": self.compute,
            "memoryScaling": self.memory_scaling,
            "coreScaling": self.core_scaling,
        }

    @classmethod
    def from_json(cls, body: Mapping[str, Any]) -> FractionMode:
        """Reads `status.fractions`; missing fields have their defaults."""
        return cls(
            dialect=Dialect(body["dialect"]),
            slots=body.get("slots", DEFAULT_SLOTS),
            unit_mib=body.get("unitMiB", 1024),
            placement=Placement(body.get("placement", "binpack")),
            isolation=Isolation(body.get("isolation", "none")),
            compute=body.get("compute", True),
            memory_scaling=body.get("memoryScaling", 1.0),
            core_scaling=body.get("coreScaling", 1.0),
        )


@dataclass(frozen=True, slots=True)
class Grant:
    """What one container gets of one GPU."""

    uuid: str
    memory_mib: int
    cores: int = 0
    """Percent of the GPU's compute; 0: no limit and nothing reserved."""
    units: int = 0
    """Of `aliyun.com/gpu-mem` on this GPU; 0 in the dialect of HAMi, where a GPU is one share."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """What the scheduler decided for a pod. Travels in the annotations of its Binding, so that it is there when the pod is."""

    pod_uid: str
    dialect: Dialect
    shape: str
    """The same for pods that may be taken for each other: number, memory, compute, tier and constraints of each container."""
    containers: Mapping[str, tuple[Grant, ...]] = field(default_factory=dict)
    """By name of the container, in the order in which the kubelet allocates: init containers first. Only those with GPUs."""

    def to_annotation(self) -> str:
        """Compact JSON; equal decisions have equal texts."""
        containers = {
            name: [[grant.uuid, grant.memory_mib, grant.cores, grant.units] for grant in grants]
            for name, grants in self.containers.items()
        }
        body = {"pod": self.pod_uid, "dialect": self.dialect.value, "shape": self.shape, "containers": containers}
        return json.dumps(body, separators=(",", ":"))

    @classmethod
    def from_annotation(cls, text: str) -> Decision:
        """Reads what `to_annotation` wrote.

        Raises:
            ValueError: the text is none of ours.
        """
        try:
            body = json.loads(text)
            return cls(
                pod_uid=str(body["pod"]),
                dialect=Dialect(body["dialect"]),
                shape=str(body["shape"]),
                containers={
                    str(name): tuple(
                        Grant(str(uuid), int(memory), int(cores), int(units)) for uuid, memory, cores, units in grants
                    )
                    for name, grants in body["containers"].items()
                },
            )
        except (KeyError, TypeError, AttributeError, ValueError, OverflowError, RecursionError) as error:
            raise ValueError(f"not a decision of the scheduler: {text[:200]!r}") from error
