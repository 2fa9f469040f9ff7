"""Label of the NVLink fabric that the GPUs are attached to."""

from __future__ import annotations

from collections.abc import Mapping

from gpushare.domain.devices import Inventory


def build_labels(inventory: Inventory) -> Mapping[str, str]:
    """`gpu.clique`, where all attached GPUs are in the same one."""
    cliques = {gpu.fabric_clique for gpu in inventory.gpus if gpu.fabric_clique is not None}
    return {"gpu.clique": cliques.pop()} if len(cliques) == 1 else {}
