"""Tells the scheduler how close the GPUs of a node are to each other. Used by `reporting` where fractions are served."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from gpushare.allocation.topology import Topology


def with_closeness(devices: Sequence[dict[str, Any]], topology: Topology | None) -> list[dict[str, Any]]:
    """The items of `status.devices`, each with its figure for each of them; unchanged where nothing is known of links."""
    if topology is None or not topology.links:
        return list(devices)
    indices = [device["index"] for device in devices]
    return [
        {**device, "closeness": [topology.score(device["index"], other) for other in indices]} for device in devices
    ]
