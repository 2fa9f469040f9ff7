"""The agent process: puts its parts together and runs them until it is told to stop.

`main` is the process; `run` is the same without anything that belongs to a process, so the sandbox runs many of them.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping, Sequence
from pathlib import Path

from gpushare.agent import connecting
from gpushare.agent import options as options_
from gpushare.agent.options import AgentOptions
from gpushare.agent.running import Agent
from gpushare.errors import UsageError
from gpushare.host.driver_roots import find_root
from gpushare.host.files import HostFiles
from gpushare.host.mps import MpsMachine
from gpushare.nvml.port import Nvml
from gpushare.serving.processes import WRONG_USAGE, Command, Signals

_COMMAND = Command(name="agent", usage=options_.usage)


def main(argv: Sequence[str], environ: Mapping[str, str], *, root: Path = Path("/")) -> int:
    """Runs the agent until SIGTERM or SIGINT. Returns its exit code: 0, or 2 for wrong usage.

    `root`: the host's, which only tests have elsewhere.
    """

    async def work(options: AgentOptions, signals: Signals) -> int:
        from gpushare.nvml.real import RealNvml  # late: the sandbox has no driver

        nvml = RealNvml(lambda: connecting.find_library(options.flags.plugin.container_driver_root))
        log = logging.getLogger("gpushare.agent")
        # SIGHUP, at which NVIDIA's plugin restarts, needs no answer: changes are followed.
        return await run(argv, environ, root=root, nvml=nvml, log=log, stop=signals.stop)

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
    """Runs the agent until `stop` is set. Returns 0, or 2 where the command line or the environment is wrong.

    Nothing else ends it: no driver, no kubelet, no API server and no configuration are states that it reports.
    """
    try:
        options = options_.parse(argv, environ)
        cluster = connecting.connect(options.kubeconfig, options.node_name, environ, root, log)
    except UsageError as error:
        log.error("wrong usage", extra={"reason": str(error)})  # noqa: TRY400 - the text says it all
        return WRONG_USAGE
    files = HostFiles(root)

    def find_driver_root() -> str:
        return find_root(files, options.flags.plugin.container_driver_root, options.flags.nvidia_driver_root).seen

    mps = MpsMachine(files, environ, find_driver_root, log)
    await Agent(options, files, nvml, mps, cluster, log).run(stop)
    return 0
