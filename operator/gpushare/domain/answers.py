"""What a container gets with the devices that it was given. Built by `sharing.responses`, carried to the kubelet."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True, kw_only=True)
class Mount:
    """One bind mount."""

    container_path: str
    host_path: str
    read_only: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceSpec:
    """One device node."""

    container_path: str
    host_path: str
    permissions: str = "rw"
    """Letters of r, w and m."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ContainerAnswer:
    """The answer to an Allocate for one container."""

    envs: Mapping[str, str] = field(default_factory=dict)
    mounts: tuple[Mount, ...] = ()
    devices: tuple[DeviceSpec, ...] = ()
    annotations: Mapping[str, str] = field(default_factory=dict)
    cdi_devices: tuple[str, ...] = ()
    """Qualified names, `<vendor>/<class>=<device>`."""
