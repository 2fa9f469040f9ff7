"""`gpushare allocate`: which GPUs a request would get on a node, and why. Nothing is really given out."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

import click

from gpushare.allocation import Allocator, BestEffort, Policy, Simple, StaticDGX1, StaticDGX2
from gpushare.allocation.policies import read_request
from gpushare.cli import inventories
from gpushare.errors import AllocationError

POLICIES: Final[Mapping[str, Callable[[], Policy]]] = {
    "best-effort": BestEffort,
    "simple": Simple,
    "static-dgx1-pascal": lambda: StaticDGX1("pascal"),
    "static-dgx1-volta": lambda: StaticDGX1("volta"),
    "static-dgx2": StaticDGX2,
}


def _names(_context: click.Context, _option: click.Parameter, values: tuple[str, ...]) -> tuple[int | str, ...]:
    names = [name.strip() for value in values for name in value.split(",")]
    if not all(names):
        raise click.BadParameter("has an empty entry; write indices or UUIDs, such as 0,3")
    return tuple(int(name) if name.isdecimal() else name for name in names)


@click.command("allocate", short_help="which GPUs a request would get on a node, and why")
@click.argument("size", type=click.IntRange(min=1), metavar="N")
@click.option(
    "--policy", type=click.Choice(list(POLICIES)), default="best-effort", show_default=True, help="How they are chosen."
)
@click.option(
    "--must-include",
    multiple=True,
    callback=_names,
    metavar="GPUS",
    help="Indices or UUIDs that must be in, such as 0,3.",
)
@click.option("--in-use", multiple=True, callback=_names, metavar="GPUS", help="Indices or UUIDs that are not free.")
@inventories.FILE
@inventories.NODE
@inventories.OUTPUT
def command(
    *,
    size: int,
    policy: str,
    must_include: tuple[int | str, ...],
    in_use: tuple[int | str, ...],
    file: Path | None,
    node: str,
    output: str | None,
) -> int:
    """Chooses N GPUs as the node agent would when the kubelet asks, and shows what was weighed up."""
    from gpushare.allocation.explaining import explain  # late: all of it loads the search, and YAML
    from gpushare.views import allocation, documents

    inventory = inventories.read_inventory(file, node)
    allocator = Allocator(inventory, POLICIES[policy]())
    try:
        allocator.allocate_specific(*in_use)
        free = [gpu.index for gpu in allocator.remaining]
        gpus = allocator.allocate(size, required=must_include)
    except AllocationError as error:
        raise click.ClickException(str(error)) from error
    by_uuid = {gpu.uuid: gpu.index for gpu in inventory.gpus}
    required = [by_uuid[name] if isinstance(name, str) else name for name in must_include]
    request = read_request(allocator.topology, free, required, size)
    assert request is not None, "it was answered"
    answer = allocation.Answer(
        policy=policy,
        gpus=gpus,
        topology=allocator.topology,
        free=len(free),
        explanation=explain(allocator.topology, request) if policy == "best-effort" else None,
    )
    if output is not None:
        click.echo(documents.build_text(allocation.build_document(answer), output))
    else:
        click.echo(allocation.build_answer(answer))
    return 0
