"""`gpushare topology`: how the GPUs of a node are connected."""

from __future__ import annotations

from pathlib import Path

import click

from gpushare.allocation.topology import Topology
from gpushare.cli import inventories


@click.command("topology", short_help="how the GPUs of a node are connected, and how close that makes them")
@inventories.FILE
@inventories.NODE
@click.option("--reference-scores", is_flag=True, help="As go-gpuallocator scores: links through NVSwitches count 0.")
@inventories.OUTPUT
def command(*, file: Path | None, node: str, reference_scores: bool, output: str | None) -> int:
    """The matrix of `nvidia-smi topo -m`, with the scores by which allocations are chosen."""
    from gpushare.views import documents, topology  # late: it loads YAML

    inventory = inventories.read_inventory(file, node)
    scored = Topology.of(inventory, through_switches=not reference_scores)
    if output is not None:
        click.echo(documents.build_text(topology.build_document(inventory, scored), output))
    else:
        click.echo(topology.build_matrix(inventory, scored))
    return 0
