"""The controller process: puts its parts together and runs them until it is told to stop.

`main` is the process; `run` is the same without anything that belongs to a process, so the sandbox runs it among others.
"""

from __future__ import annotations

import asyncio
import logging
import uuid
from collections.abc import Mapping, Sequence
from pathlib import Path

from gpushare.controller import options as options_
from gpushare.controller.options import Options
from gpushare.errors import UsageError
from gpushare.kube.placing import find_place
from gpushare.serving.processes import WRONG_USAGE, Command, Signals, run_until

_COMMAND = Command(name="controller", usage=options_.help_text)


def main(argv: Sequence[str], environ: Mapping[str, str]) -> int:
    """Runs the controller until SIGTERM or SIGINT. Returns its exit code: 0, or 2 for wrong usage."""

    async def work(_: Options, signals: Signals) -> int:
        log = logging.getLogger("gpushare.controller")
        return await run(argv, environ, root=Path("/"), log=log, stop=signals.stop)

    return _COMMAND.run(argv, lambda: options_.parse(argv, environ), work, level=lambda options: options.log_level)


async def run(
    argv: Sequence[str], environ: Mapping[str, str], *, root: Path, log: logging.Logger, stop: asyncio.Event
) -> int:
    """Runs the controller until `stop` is set. Returns 0, or 2 where the command line or the environment is wrong.

    Nothing that the cluster says or fails to say ends it.
    """
    try:
        options = options_.parse(argv, environ)
        credentials, namespace = find_place(options, environ, root)
    except UsageError as error:
        log.error("wrong usage", extra={"reason": str(error)})  # noqa: TRY400 - the text says it all
        return WRONG_USAGE
    from gpushare.controller.running import Controller  # late: kopf and the client take a second

    identity = options.identity or f"gpushare-{uuid.uuid4().hex[:12]}"
    controller = Controller(options, credentials, namespace, identity, log)
    await run_until(controller.run(), stop)
    return 0
