"""What labels need to know beside the GPUs. Read by `agent.discovery`."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class VirtualGpu:
    """What a vGPU tells about its host in the PCI configuration space."""

    host_driver_version: str = ""
    host_driver_branch: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class HostFacts:
    """Facts of the machine."""

    machine: str = ""
    """Product name of the machine, from its firmware; empty: not known."""
    virtual_gpus: tuple[VirtualGpu, ...] | None = ()
    """None: the PCI configuration space could not be read."""
    timestamp: int | None = None
    """Seconds since 1970; None: no label of it."""
