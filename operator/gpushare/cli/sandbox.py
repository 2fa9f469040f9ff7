"""`gpushare sandbox`: parses, starts, says what to try, stops. All else is in `gpushare.sandbox`."""

from __future__ import annotations

import asyncio
import errno
import gc
import logging
import signal
import sys
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING

import click

from gpushare.errors import ConfigurationError, GpuShareError

if TYPE_CHECKING:
    from gpushare.sandbox import app

_LONG_SECONDS = 10.0
_YOUNG_OBJECTS = 10_000
"""Between two looks of the garbage collector."""
_FILE = click.Path(dir_okay=False, path_type=Path)


@click.command("sandbox", short_help="a simulated GPU cluster in your terminal, for real kubectl")
@click.option(
    "--scenario", type=_FILE, help="YAML file that describes the nodes; default: 4 x T4, 2 x A100, one CPU node."
)
@click.option("--nodes", type=click.IntRange(1, 5000), help="Instead of a scenario: that many nodes of 4 x T4.")
@click.option("--port", type=click.IntRange(0, 65535), default=0, help="Port of the API server; default: a free one.")
@click.option("--write-kubeconfig", type=_FILE, help="Write the kubeconfig here as well, once the cluster is ready.")
@click.option("--kubeconfig", type=_FILE, help="Attach the simulated nodes to this API server instead of starting one.")
@click.option(
    "--tour", type=click.Choice(["sharing", "fractions"]), is_flag=False, flag_value="sharing",
    help="Walk through GPU sharing, or through fractions of GPUs, with real kubectl, then end; 1 at the first surprise.",
)  # fmt: skip
@click.option("--stay", is_flag=True, help="After the tour: stay until Ctrl-C, where there is a terminal.")
@click.option("--verbose", "-v", is_flag=True, help="Show the logs of everything that runs inside.")
def command(
    *,
    scenario: Path | None,
    nodes: int | None,
    port: int,
    write_kubeconfig: Path | None,
    kubeconfig: Path | None,
    tour: str | None,
    stay: bool,
    verbose: bool,
) -> int:
    """A whole simulated GPU cluster in one process: real controller, real agents, real kubectl; no GPU needed."""
    if scenario is not None and nodes is not None:
        raise click.UsageError("--scenario and --nodes both say which nodes there are: give one of them")
    if write_kubeconfig is not None and not write_kubeconfig.absolute().parent.is_dir():
        raise click.UsageError(f"--write-kubeconfig: there is no folder {write_kubeconfig.parent}")
    if stay and not tour:
        raise click.UsageError("--stay goes with --tour; without a tour the sandbox stays anyway")
    app = _load(verbose=verbose)
    options = app.Options(
        scenario=scenario, nodes=nodes, port=port, write_kubeconfig=write_kubeconfig, attach_to=kubeconfig
    )
    try:
        return asyncio.run(_run(options, tour=tour, stay=stay))
    except ConfigurationError as error:
        place = f"{scenario}: " if scenario is not None else ""
        raise click.ClickException("\n".join(f"{place}{problem}" for problem in error.problems)) from error
    except BrokenPipeError:
        raise  # whoever reads has seen enough: click ends it without a word
    except (GpuShareError, OSError) as error:
        is_taken = port and isinstance(error, OSError) and error.errno == errno.EADDRINUSE
        raise click.ClickException(
            f"port {port} is taken; name another one with --port" if is_taken else str(error)
        ) from error


def _load(*, verbose: bool) -> ModuleType:
    """The sandbox itself, which is loaded late since it loads everything."""
    try:
        from gpushare.sandbox import app
    except ModuleNotFoundError as error:
        raise click.ClickException(
            f"the sandbox needs {error.name}: install this package with its extra, as in `pip install '.[sandbox]'`"
        ) from error
    from gpushare.sandbox.node.logs import LineFormatter

    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(LineFormatter("%(asctime)s %(name)s: %(message)s"))
    logging.basicConfig(level=logging.INFO if verbose else logging.CRITICAL, handlers=[handler])
    return app


async def _run(options: app.Options, *, tour: str | None, stay: bool) -> int:
    from gpushare.sandbox import app
    from gpushare.sandbox.tour import engine, fractions, steps

    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stop.set)
    async with app.Sandbox(options) as sandbox:
        if not await _wait(sandbox, stop):
            return 0
        # What stands now stands to the end, and what comes goes by itself, but for a little: with many nodes, the collector
        # would spend a tenth of the time on looking at all of it.
        gc.freeze()
        gc.set_threshold(_YOUNG_OBJECTS)
        click.echo(sandbox.greeting())
        code = 0
        if tour:
            walked = fractions.STEPS if tour == "fractions" else steps.STEPS
            code = await engine.walk(walked, kubeconfig=sandbox.kubeconfig, say=click.echo, stop=stop)
        if code == 0 and (not tour or (stay and sys.stdin.isatty())):
            click.echo("The cluster stays until Ctrl-C.")
            await stop.wait()
        return code


async def _wait(sandbox: app.Sandbox, stop: asyncio.Event) -> bool:
    """Waits until the cluster is ready, and says what for when it takes long. False: it was stopped before."""
    ready = asyncio.create_task(sandbox.ready(stop))
    while not ready.done():
        await asyncio.wait({ready}, timeout=_LONG_SECONDS)
        if not ready.done():
            text = (
                f"still waiting for {sandbox.waiting_for} (look with KUBECONFIG={sandbox.kubeconfig}, or use --verbose)"
            )
            click.echo(text, err=True)
    return ready.result()
