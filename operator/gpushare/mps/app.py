"""The MPS process: puts its parts together and runs them until it is told to stop.

`main` is the process; `run` is the same without anything that belongs to a process, so the sandbox runs many of them.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping, Sequence
from pathlib import Path

from gpushare.agent import connecting
from gpushare.errors import UsageError
from gpushare.host import mounting
from gpushare.host.files import HostFiles
from gpushare.host.mps import SHM, MpsMachine
from gpushare.mps import options as options_
from gpushare.mps.options import MpsOptions
from gpushare.mps.running import MpsService
from gpushare.nvml.port import Nvml
from gpushare.serving.processes import WRONG_USAGE, Command, Signals

_FAILED = 1
_COMMAND = Command(name="mps", usage=options_.usage)


def main(argv: Sequence[str], environ: Mapping[str, str]) -> int:
    """Runs until SIGTERM or SIGINT. Returns 0; 1 where the shared memory cannot be mounted; 2 for wrong usage."""

    async def work(options: MpsOptions, signals: Signals) -> int:
        from gpushare.nvml.real import RealNvml  # late: the sandbox has no driver

        nvml = RealNvml(lambda: connecting.find_library(options.driver_root))
        log = logging.getLogger("gpushare.mps")
        # SIGHUP, at which NVIDIA's daemon restarts everything, needs no answer: changes are followed.
        return await run(argv, environ, root=Path("/"), nvml=nvml, log=log, stop=signals.stop)

    return _COMMAND.run(argv, lambda: options_.parse(argv, environ), work)


async def run(
    argv: Sequence[str],
    environ: Mapping[str, str],
    *,
    root: Path,
    nvml: Nvml,
    log: logging.Logger,
    stop: asyncio.Event,
) -> int:
    """Runs until `stop` is set, or mounts the shared memory where that is asked for. Returns the exit code, as `main` does.

    Nothing else ends it: no driver, no API server, no configuration and no program are states that it reports.
    """
    files = HostFiles(root)
    try:
        options = options_.parse(argv, environ)
        if options.mounts_only:
            return _mount_shm(files, log)
        cluster = connecting.connect(options.kubeconfig, options.node_name, environ, root, log)
    except UsageError as error:
        log.error("wrong usage", extra={"reason": str(error)})  # noqa: TRY400 - the text says it all
        return WRONG_USAGE
    try:
        machine = MpsMachine(files, environ, lambda: options.driver_root, log)
        await MpsService(options, files, machine, nvml, log).run(cluster, stop)
    finally:
        if cluster is not None:
            await cluster.close()
    return 0


def _mount_shm(files: HostFiles, log: logging.Logger) -> int:
    """Anew each time, as NVIDIA's daemon does: what an ended daemon left in it is of no use to the next."""
    kib = mounting.half_of_memory(files)
    try:
        mounting.mount_tmpfs(files.path(SHM), kib)
    except OSError as error:
        log.error(  # noqa: TRY400 - the text says it all
            "shared memory cannot be mounted; the container must be privileged",
            extra={"path": SHM, "reason": error.strerror},
        )
        return _FAILED
    log.info("shared memory mounted", extra={"path": SHM, "kib": kib})
    return 0
