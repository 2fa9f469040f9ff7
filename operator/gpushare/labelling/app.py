"""The labelling process: puts its parts together and runs them, once or until it is told to stop.

`main` is the process; `run` is the same without anything that belongs to a process.
"""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from gpushare.agent import connecting
from gpushare.errors import UsageError
from gpushare.labelling import options as options_
from gpushare.labelling.running import Labelling, Signals
from gpushare.nvml.port import Nvml
from gpushare.serving.logs import log_as_json

_FAILED: Final = 1
_WRONG_USAGE: Final = 2


def main(argv: Sequence[str], environ: Mapping[str, str]) -> int:
    """Labels until SIGTERM or SIGINT, or once. Returns 0; 1 where a single try failed; 2 for wrong usage."""
    if {"-h", "--help", "-help"} & set(argv):
        print(options_.usage(), end="")  # noqa: T201 - asked for on a terminal
        return 0
    try:
        options = options_.parse(argv, environ)
    except UsageError as error:
        print(f"gpushare labels: {error}", file=sys.stderr)  # noqa: T201 - before there is a log
        return _WRONG_USAGE
    log_as_json()
    # Pydantic would search every installed package for plugins at its first model.
    os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "__all__")
    library = connecting.find_library(options.flags.plugin.container_driver_root)
    return asyncio.run(_until_signal(argv, environ, library))


async def _until_signal(argv: Sequence[str], environ: Mapping[str, str], library: str) -> int:
    from gpushare.nvml.real import RealNvml  # late: whoever calls `run` may have no driver

    loop, log, signals = asyncio.get_running_loop(), logging.getLogger("gpushare.labels"), Signals()
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGQUIT):
        loop.add_signal_handler(number, signals.stop.set)
    loop.add_signal_handler(signal.SIGHUP, signals.again.set)
    return await run(argv, environ, root=Path("/"), nvml=RealNvml(library), log=log, signals=signals)


async def run(
    argv: Sequence[str],
    environ: Mapping[str, str],
    *,
    root: Path,
    nvml: Nvml,
    log: logging.Logger,
    signals: Signals,
) -> int:
    """Labels the node whose files are below `root`. Returns what `main` returns."""
    try:
        labelling = Labelling(options_.parse(argv, environ), environ, root, nvml, log)
        return 0 if await labelling.run(signals) else _FAILED
    except UsageError as error:
        log.error("wrong usage", extra={"reason": str(error)})  # noqa: TRY400 - the text says it all
        return _WRONG_USAGE
