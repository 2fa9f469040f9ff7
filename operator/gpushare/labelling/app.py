"""The labelling process: puts its parts together and runs them, once or until it is told to stop.

`main` is the process; `run` is the same without anything that belongs to a process.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from gpushare.agent import connecting
from gpushare.errors import UsageError
from gpushare.labelling import options as options_
from gpushare.labelling.options import LabelOptions
from gpushare.labelling.running import Labelling
from gpushare.nvml.port import Nvml
from gpushare.serving.processes import WRONG_USAGE, Command, Signals

_FAILED: Final = 1
_COMMAND: Final = Command(name="labels", usage=options_.usage)


def main(argv: Sequence[str], environ: Mapping[str, str]) -> int:
    """Labels until SIGTERM or SIGINT, or once. Returns 0; 1 where a single try failed; 2 for wrong usage."""

    async def work(options: LabelOptions, signals: Signals) -> int:
        from gpushare.nvml.real import RealNvml  # late: whoever calls `run` may have no driver

        nvml = RealNvml(lambda: connecting.find_library(options.flags.plugin.container_driver_root))
        return await run(
            argv, environ, root=Path("/"), nvml=nvml, log=logging.getLogger("gpushare.labels"), signals=signals
        )

    return _COMMAND.run(argv, lambda: options_.parse(argv, environ), work)


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
        return WRONG_USAGE
