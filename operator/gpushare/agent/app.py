"""The agent process: puts its parts together and runs them until it is told to stop.

`main` is the process; `run` is the same without anything that belongs to a process, so the sandbox runs many of them.
"""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from gpushare.agent import connecting
from gpushare.agent import options as options_
from gpushare.agent.running import Agent
from gpushare.errors import UsageError
from gpushare.host.driver_files import find_root
from gpushare.host.files import HostFiles
from gpushare.host.mps import MpsMachine
from gpushare.nvml.port import Nvml
from gpushare.serving.logs import log_as_json

_FAILED = 2
"""Exit code for a command line or an environment that cannot be used."""


def main(argv: Sequence[str], environ: Mapping[str, str], *, root: Path = Path("/")) -> int:
    """Runs the agent until SIGTERM or SIGINT. Returns its exit code: 0, or 2 for wrong usage.

    `root`: the host's, which only tests have elsewhere.
    """
    if {"-h", "--help", "-help"} & set(argv):
        print(options_.usage(), end="")  # noqa: T201 - asked for on a terminal
        return 0
    try:
        options = options_.parse(argv, environ)
    except UsageError as error:
        print(f"gpushare agent: {error}", file=sys.stderr)  # noqa: T201 - before there is a log
        return _FAILED
    log_as_json()
    # Pydantic searches every installed package for plugins at its first model, which takes 30 ms of the start.
    os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "__all__")
    library = connecting.find_library(options.flags.plugin.container_driver_root)
    return asyncio.run(_until_signal(argv, environ, root, library))


async def _until_signal(argv: Sequence[str], environ: Mapping[str, str], root: Path, library: str) -> int:
    from gpushare.nvml.real import RealNvml  # late: the sandbox has no driver

    loop, log, stop = asyncio.get_running_loop(), logging.getLogger("gpushare.agent"), asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGQUIT):
        loop.add_signal_handler(number, stop.set)
    # NVIDIA's plugin restarts at SIGHUP, and its side-cars send it; unhandled, it would end the process.
    loop.add_signal_handler(signal.SIGHUP, lambda: log.info("SIGHUP is not needed: changes are followed"))
    return await run(argv, environ, root=root, nvml=RealNvml(library), log=log, stop=stop)


async def run(
    argv: Sequence[str],
    environ: Mapping[str, str],
    *,
    root: Path,
    nvml: Nvml,
    log: logging.Logger,
    stop: asyncio.Event,
) -> int:
    """Runs the agent until `stop` is set. Returns 0, or 2 where the command line or the environment is wrong.

    Nothing else ends it: no driver, no kubelet, no API server and no configuration are states that it reports.
    """
    try:
        options = options_.parse(argv, environ)
        cluster = connecting.connect(options.kubeconfig, options.node_name, environ, root, log)
    except UsageError as error:
        log.error("wrong usage", extra={"reason": str(error)})  # noqa: TRY400 - the text says it all
        return _FAILED
    files = HostFiles(root)
    driver = find_root(files, options.flags.plugin.container_driver_root, options.flags.nvidia_driver_root)
    mps = MpsMachine(files, environ, driver.seen, log)
    await Agent(options, files, nvml, mps, cluster, log).run(stop)
    return 0
