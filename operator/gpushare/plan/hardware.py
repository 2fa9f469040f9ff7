"""A node's GPUs as its agent told them: the inverse of the device form of `agent.reporting`. For previews.

What is not told (device nodes, MIG slices and engines) is not known here; no count of a resource depends on it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gpushare.domain.devices import GPU, ComputeCapability, Health, Inventory, MigInstance
from gpushare.domain.gpunode import GPUNodeStatus


def inventory_of(status: GPUNodeStatus) -> Inventory:
    """The inventory that a GPUNode's status tells of."""
    major, _, minor = status.cuda_version.partition(".")
    return Inventory(
        gpus=tuple(map(_gpu, status.devices)),
        driver_version=status.driver_version,
        cuda_version=(int(major), int(minor)) if major.isdecimal() and minor.isdecimal() else None,
    )


def _gpu(body: Mapping[str, Any]) -> GPU:
    return GPU(
        index=body["index"],
        uuid=body["uuid"],
        product=body.get("product", ""),
        memory_mib=body.get("memoryMiB", 0),
        compute_capability=ComputeCapability.parse(body.get("computeCapability", "")),
        bus_id=body.get("busId", ""),
        numa_node=body.get("numaNode"),
        mig_capable="migEnabled" in body,
        mig_enabled=body.get("migEnabled", False),
        mig=tuple(map(_instance, body.get("mig", ()))),
        health=_health(body.get("health", {})),
    )


def _instance(body: Mapping[str, Any]) -> MigInstance:
    # Instances are told apart by their index; the driver's own numbers are not told.
    return MigInstance(
        index=body["index"],
        uuid=body["uuid"],
        profile=body.get("profile", ""),
        gpu_instance=body["index"],
        compute_instance=0,
        memory_mib=body.get("memoryMiB", 0),
        health=_health(body.get("health", {})),
    )


def _health(body: Mapping[str, Any]) -> Health:
    return Health(healthy=body.get("healthy", True), reason=body.get("reason", ""), since=body.get("since", ""))
