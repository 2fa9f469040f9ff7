"""Labels of what GPUs can do and how they are set: MIG, and compute or graphics."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from gpushare.domain.devices import Inventory, MigStrategy

_MODES: Final = {0x030000: "graphics", 0x030200: "compute"}


def build_labels(inventory: Inventory, strategy: MigStrategy) -> Mapping[str, str]:
    """`mig.capable`, `mig.strategy` where MIG is used, and `gpu.mode`, which is `unknown` where GPUs differ."""
    modes = {_MODES.get(gpu.pci_class, "unknown") if gpu.pci_class is not None else "unknown" for gpu in inventory.gpus}
    labels = {
        "mig.capable": str(any(gpu.mig_capable for gpu in inventory.gpus)).lower(),
        "gpu.mode": modes.pop() if len(modes) == 1 else "unknown",
    }
    if strategy is not MigStrategy.NONE:
        labels["mig.strategy"] = strategy.value
    return labels
