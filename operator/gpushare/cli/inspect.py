"""`gpushare inspect`, also as `kubectl inspect cgpu` and `kubectl inspect gpushare`: who holds what of which GPU."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from gpushare.cli import clusters, inventories
from gpushare.errors import GpuShareError, UsageError

if TYPE_CHECKING:
    from gpushare.cli.pictures import Picture
    from gpushare.domain.manifests import Manifest
    from gpushare.placement.nodes import NodeState
    from gpushare.scheduler.books import Placed
    from gpushare.views.inspection import InspectedNode, InspectedPod


@click.command("inspect", short_help="who holds which part of which GPU, as `kubectl inspect cgpu` shows it")
@click.argument("node", default="")
@click.option("--details", "-d", is_flag=True, help="A table for each node, with a row for each pod.")
@clusters.FILES
@clusters.KUBECONFIG
@inventories.OUTPUT
def command(*, node: str, details: bool, files: tuple[str, ...], kubeconfig: Path | None, output: str | None) -> int:
    """Memory of shared GPUs, allocated and in total, on all nodes or on NODE; in units of aliyun.com/gpu-mem, or in MiB.

    The table is that of Alibaba's tool, to the letter; -o tells the isolation and each pod's part besides.
    """
    from gpushare.cli import pictures  # late: it loads half of the scheduler
    from gpushare.views import documents, inspection

    try:
        nodes = read_nodes(pictures.read_picture(files, kubeconfig))
    except UsageError as error:
        raise click.UsageError(str(error)) from error
    except GpuShareError as error:
        raise clusters.NotJudged(str(error)) from error
    shown = [each for each in nodes if node in ("", each.name)]
    if node and not shown:
        raise click.UsageError(
            f"there is no node {node} that serves fractions of GPUs; `kubectl get gpunodes` lists all"
        )
    if output is not None:
        click.echo(documents.build_text(inspection.build_document(shown), output))
    elif not shown:
        click.echo("No node serves fractions of GPUs.")
    else:
        click.echo(inspection.build_details(shown) if details else inspection.build_summary(shown))
    return 0


def read_nodes(picture: Picture) -> list[InspectedNode]:
    """The nodes that serve fractions, by name."""
    from gpushare.domain import manifests

    addresses = {node["metadata"]["name"]: _address_of(node) for node in picture.of(manifests.NODE)}
    states = sorted(picture.books.nodes.values(), key=lambda state: state.name)
    return [_inspect(picture, state, addresses.get(state.name, "unknown")) for state in states if state.mode]


def _inspect(picture: Picture, state: NodeState, address: str) -> InspectedNode:
    from gpushare.domain.fractions import Dialect
    from gpushare.views.inspection import InspectedNode

    assert state.mode is not None
    unit = state.mode.unit_mib if state.mode.dialect is Dialect.ALIYUN else 1
    placed = [pod for pod in picture.books.pods.values() if pod.node == state.name]
    return InspectedNode(
        name=state.name,
        address=address,
        mode=state.mode,
        unit_mib=unit,
        totals={gpu.index: gpu.traits.memory_mib // unit for gpu in state.gpus},
        pods=tuple(_inspect_pod(picture, state, pod, unit) for pod in sorted(placed, key=str)),
    )


def _inspect_pod(picture: Picture, state: NodeState, pod: Placed, unit: int) -> InspectedPod:
    from gpushare.views.inspection import InspectedPod

    indexes = {gpu.uuid: gpu.index for gpu in state.gpus}
    held = {indexes[uuid]: use.memory_mib // unit for uuid, use in pod.holding.items() if uuid in indexes}
    pending = 0 if pod.containers else picture.units_asked_for(pod, unit)
    return InspectedPod(namespace=pod.namespace, name=pod.name, gpus=held, pending=pending)


def _address_of(node: Manifest) -> str:
    addresses = (node.get("status") or {}).get("addresses") or ()
    return next((str(each["address"]) for each in addresses if each["type"] == "InternalIP"), "unknown")
