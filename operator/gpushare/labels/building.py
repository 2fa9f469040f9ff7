"""All labels of a node: the families, merged in order. Called by the agent for GPUNode status, and by `gpushare labels`."""

from __future__ import annotations

from collections.abc import Mapping

from gpushare import names
from gpushare.domain.devices import Inventory, MigStrategy
from gpushare.domain.pools import Pool
from gpushare.labels import driver, fabric, gpus, machine, mig, modes, sharing, vgpu
from gpushare.labels.facts import HostFacts
from gpushare.labels.values import legal


def build_labels(
    inventory: Inventory, pools: Mapping[str, Pool], facts: HostFacts, strategy: MigStrategy
) -> dict[str, str]:
    """Labels as GPU feature discovery writes them, for what `pools` really serve. Every value is a legal label value.

    A node without GPUs has next to none. On a node with several models, the labels are those of the model with the most
    GPUs, of the lowest index where two have as many.
    """
    labels = {**machine.build_timestamp(facts), **vgpu.build_labels(facts)}
    if inventory.gpus:
        labels |= machine.build_labels(facts)
        labels |= driver.build_labels(inventory)
        labels |= modes.build_labels(inventory, strategy)
        labels |= fabric.build_labels(inventory)
        labels |= sharing.build_capability(inventory, pools)
        labels |= gpus.build_labels(inventory, pools, strategy)
        labels |= sharing.build_fractions(pools)
        labels |= mig.build_labels(inventory, pools, strategy)
    return {names.PREFIX + key: legal(value) for key, value in sorted(labels.items())}
