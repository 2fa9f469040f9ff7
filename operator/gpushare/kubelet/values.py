"""Plain values at the border of this package, in place of protobuf messages."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Protocol

from gpushare.domain.pools import Pool
from gpushare.errors import KubeletError
from gpushare.sharing.responses import ContainerAnswer

VERSION: Final = "v1beta1"
"""The only version of the device plugin protocol that kubelets speak."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Device:
    """One device as the kubelet sees it."""

    id: str
    healthy: bool = True
    numa_nodes: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class PluginOptions:
    """What a plugin tells the kubelet that it can do."""

    preferred_allocation: bool = True
    pre_start: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Registration:
    """A plugin's request to be used for a resource."""

    endpoint: str
    """File name of its socket, next to the kubelet's."""
    resource: str
    options: PluginOptions = PluginOptions()
    version: str = VERSION


@dataclass(frozen=True, slots=True, kw_only=True)
class PreferenceRequest:
    """The kubelet asks which `size` of the available devices it should take for one container."""

    available: tuple[str, ...]
    must_include: tuple[str, ...] = ()
    size: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ContainerDevices:
    """The devices of one resource that one container holds."""

    namespace: str
    pod: str
    container: str
    resource: str
    ids: tuple[str, ...]


class CallFailed(KubeletError):  # noqa: N818 - named after what happened, like the states in `errors`
    """The other side of a call refused it or went away."""

    def __init__(self, code: str, text: str) -> None:
        super().__init__(f"{code}: {text}")
        self.code = code
        """gRPC's name of the status: `UNKNOWN`, `UNAVAILABLE`, `DEADLINE_EXCEEDED`, ..."""
        self.text = text


class Answers(Protocol):
    """What a plugin server answers. Called from several threads at once; must be quick and touch no device.

    A refusal is any `GpuShareError`: its text reaches the pod's events.
    """

    def allocate(self, pool: Pool, ids: Sequence[str]) -> ContainerAnswer:
        """What one container gets with these devices."""
        ...

    def prefer(self, pool: Pool, request: PreferenceRequest) -> Sequence[str]:
        """The devices that one container should get."""
        ...
