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

from gpushare import names
from gpushare.agent import options as options_
from gpushare.agent.options import AgentOptions
from gpushare.agent.running import Agent
from gpushare.agent.settings import CONTAINER_DRIVER_ROOT
from gpushare.errors import UsageError
from gpushare.host.files import HostFiles
from gpushare.kube.cluster import Cluster
from gpushare.nvml.port import Nvml
from gpushare.serving.logs import log_as_json

_FAILED = 2
"""Exit code for a command line or an environment that cannot be used."""
_LIBRARY_FOLDERS = (
    "usr/lib64",
    "usr/lib/x86_64-linux-gnu",
    "usr/lib/aarch64-linux-gnu",
    "lib64",
    "lib/x86_64-linux-gnu",
    "lib/aarch64-linux-gnu",
)
"""Where a driver root has its library; the places and the order of NVIDIA's device plugin."""


def main(argv: Sequence[str], environ: Mapping[str, str]) -> int:
    """Runs the agent until SIGTERM or SIGINT. Returns its exit code: 0, or 2 for wrong usage."""
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
    return asyncio.run(_until_signal(argv, environ, _library(options)))


async def _until_signal(argv: Sequence[str], environ: Mapping[str, str], library: str) -> int:
    from gpushare.nvml.real import RealNvml  # late: the sandbox has no driver

    loop, log, stop = asyncio.get_running_loop(), logging.getLogger("gpushare.agent"), asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGQUIT):
        loop.add_signal_handler(number, stop.set)
    # NVIDIA's plugin restarts at SIGHUP, and its side-cars send it; unhandled, it would end the process.
    loop.add_signal_handler(signal.SIGHUP, lambda: log.info("SIGHUP is not needed: changes are followed"))
    return await run(argv, environ, root=Path("/"), nvml=RealNvml(library), log=log, stop=stop)


def _library(options: AgentOptions) -> str:
    """The driver's library below the driver root as this container sees it; empty: the loader has to find it."""
    said = options.flags.plugin.container_driver_root
    root = Path(CONTAINER_DRIVER_ROOT if said is None else said)
    candidates = (root / folder / "libnvidia-ml.so.1" for folder in _LIBRARY_FOLDERS)
    return next((str(path.resolve()) for path in candidates if path.exists()), "")


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
        cluster = _connect(options, environ, root, log)
    except UsageError as error:
        log.error("wrong usage", extra={"reason": str(error)})  # noqa: TRY400 - the text says it all
        return _FAILED
    await Agent(options, root, nvml, cluster, log).run(stop)
    return 0


def _connect(options: AgentOptions, environ: Mapping[str, str], root: Path, log: logging.Logger) -> Cluster | None:
    """The cluster of this node; None where there are no credentials for one.

    Raises:
        UsageError: a kubeconfig that cannot be used, or a cluster without the node's name.
    """
    if not options.kubeconfig and "KUBERNETES_SERVICE_HOST" not in environ:
        log.info("no cluster: no GPUNode is written")
        return None
    if not options.node_name:
        raise UsageError(f"the node's name is not known; set {names.ENV_NODE_NAME} or give --node-name")
    # Late: an agent without a cluster needs neither TLS nor HTTP.
    from gpushare.kube import credentials
    from gpushare.kube.lean import LeanCluster

    if options.kubeconfig:
        return LeanCluster(credentials.from_kubeconfig(HostFiles(root).path(options.kubeconfig)))
    return LeanCluster(credentials.in_cluster(root, environ))
