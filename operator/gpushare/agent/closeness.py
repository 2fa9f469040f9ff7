"""Tells the scheduler how close the GPUs of a node are to each other. Used by `reporting` where fractions are served."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from gpushare.allocation import Topology
from gpushare.domain.devices import Inventory


def with_closeness(devices: Sequence[dict[str, Any]], inventory: Inventory) -> list[dict[str, Any]]:
    """The items of `status.devices`, each with its figure for each of them; unchanged where nothing is known of links."""
    if not inventory.links:
        return list(devices)
    topology = Topology.of(inventory)
    indices = [device["index"] for device in devices]
    return [
        {**device, "closeness": [topology.score(device["index"], other) for other in indices]} for device in devices
    ]
