"""The scheduler process: puts its parts together and runs them until it is told to stop.

`main` is the process; `run` is the same without anything that belongs to a process, so the sandbox runs it among others.
"""

from __future__ import annotations

import asyncio
import gc
import logging
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from gpushare import names
from gpushare.errors import UsageError
from gpushare.kube.lean import LeanCluster
from gpushare.kube.placing import find_place
from gpushare.scheduler import options as options_
from gpushare.scheduler import settings as settings_
from gpushare.scheduler.mutating import AdmissionSettings
from gpushare.scheduler.options import Options
from gpushare.scheduler.running import Scheduler
from gpushare.serving.processes import WRONG_USAGE, Command, Signals, run_until

_COMMAND = Command(name="scheduler", usage=options_.help_text)


def main(argv: Sequence[str], environ: Mapping[str, str]) -> int:
    """Runs the scheduler until SIGTERM or SIGINT. Returns its exit code: 0, or 2 for wrong usage."""

    async def work(_: Options, signals: Signals) -> int:
        log = logging.getLogger("gpushare.scheduler")
        # What was read at the start stays for long: nobody has to look through it for garbage, which would delay answers.
        return await run(argv, environ, root=Path("/"), log=log, stop=signals.stop, settled=gc.freeze)

    return _COMMAND.run(argv, lambda: options_.parse(argv, environ), work, level=lambda options: options.log_level)


async def run(
    argv: Sequence[str],
    environ: Mapping[str, str],
    *,
    root: Path,
    log: logging.Logger,
    stop: asyncio.Event,
    settled: Callable[[], object] = lambda: None,
) -> int:
    """Runs the scheduler until `stop` is set. Returns 0, or 2 where the command line, the environment or the settings are wrong.

    Nothing that the cluster says or fails to say ends it. `settled` is called once all that exists has been read.
    """
    try:
        options = options_.parse(argv, environ)
        settings = _read_settings(options)
        credentials, namespace = find_place(options, environ, root)
        cluster = LeanCluster(credentials, concurrency=64, user_agent=names.SCHEDULER)
    except UsageError as error:
        log.error("wrong usage", extra={"reason": str(error)})  # noqa: TRY400 - the text says it all
        return WRONG_USAGE
    name = options.name or f"{names.SCHEDULER}-{uuid.uuid4().hex[:12]}"
    scheduler = Scheduler(options, settings, cluster, namespace, name, log)
    await run_until(scheduler.run(settled), stop)
    return 0


def _read_settings(options: Options) -> AdmissionSettings:
    text = ""
    if options.settings is not None:
        try:
            text = options.settings.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            reason = error.strerror if isinstance(error, OSError) else "is no text"
            raise UsageError(f"--settings {options.settings}: {reason}") from error
    settings = settings_.read_settings(text, f"--settings {options.settings}")
    return replace(settings, scheduler_name=options.scheduler_name)
