"""Where the commands about GPUs get them from: a file, or the driver of this machine."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import click

from gpushare.cli import texts
from gpushare.domain.devices import Inventory
from gpushare.errors import ConfigurationError, DeviceError, UsageError

FILE = click.option(
    "--file", "-f", type=click.Path(dir_okay=False, path_type=Path),
    help="A node's description, a scenario of the sandbox, or what `gpushare topology -o yaml` printed; - is standard "
    "input. Default: this machine's driver.",
)  # fmt: skip
NODE = click.option(
    "--node", default="", metavar="NAME", help="Which node of a scenario; default: the first one that has GPUs."
)
OUTPUT = click.option("--output", "-o", type=click.Choice(["json", "yaml"]), help="For programs, in this form.")


def read_inventory(file: Path | None, node: str) -> Inventory:
    """The GPUs and their links; what is odd about them goes to standard error.

    Raises:
        ClickException: the file cannot be used, or the driver cannot be asked.
    """
    if node and file is None:
        raise click.UsageError("--node names a node of a scenario: give the scenario with --file")
    inventory = _read_file(file, node) if file is not None else _ask_driver()
    for problem in (*inventory.problems, *inventory.link_problems):
        click.echo(f"warning: {problem}", err=True)
    if not inventory.gpus:
        raise click.ClickException(
            f"{file}: there is no GPU in it"
            if file
            else "there is no GPU; describe a node in a file and give it with --file"
        )
    return inventory


def _read_file(file: Path, node: str) -> Inventory:
    from gpushare.nvml.documents import parse_inventory  # late: not for machines with GPUs

    try:
        return parse_inventory(texts.read_text(str(file)), node)
    except ConfigurationError as error:
        raise click.ClickException("\n".join(f"{file}: {problem}" for problem in error.problems)) from error
    except UsageError as error:
        raise click.ClickException(str(error)) from error


def _ask_driver() -> Inventory:
    from gpushare.agent.discovery import read_inventory  # late: not for files
    from gpushare.host.files import HostFiles
    from gpushare.nvml.reading import read_links
    from gpushare.nvml.real import RealNvml

    nvml = RealNvml()
    try:
        nvml.start()
        inventory = read_inventory(nvml, HostFiles(Path("/")))
        read = read_links(nvml, inventory.gpus)
    except DeviceError as error:
        raise click.ClickException(f"{error}; describe a node in a file and give it with --file") from error
    finally:
        nvml.stop()
    return replace(inventory, links=read.links, link_problems=read.problems)
