"""`gpushare top`: which GPU is held by whom."""

from __future__ import annotations

from pathlib import Path

import click

from gpushare.cli import clusters, inventories
from gpushare.errors import GpuShareError, UsageError


@click.command("top", short_help="each GPU: its memory, its health, and who holds what of it")
@click.argument("node", default="")
@clusters.FILES
@clusters.KUBECONFIG
@inventories.OUTPUT
def command(*, node: str, files: tuple[str, ...], kubeconfig: Path | None, output: str | None) -> int:
    """All GPUs, or those of NODE, and the containers that hold shares, fractions or the whole of them."""
    from gpushare.cli import pictures  # late: it loads half of the scheduler
    from gpushare.views import documents, holders

    try:
        found = pictures.read_picture(files, kubeconfig).gpu_nodes
    except UsageError as error:
        raise click.UsageError(str(error)) from error
    except GpuShareError as error:
        raise clusters.NotJudged(str(error)) from error
    shown = [each for each in found if node in ("", each.name)]
    if node and not shown:
        raise click.UsageError(f"there is no GPUNode {node}: `kubectl get gpunodes` lists those that there are")
    click.echo(documents.build_text(holders.build_document(shown), output) if output else holders.build_text(shown))
    return 0
