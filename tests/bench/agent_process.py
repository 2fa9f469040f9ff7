"""One agent as a process of its own, with simulated GPUs: `agent_process.py ROOT GPUS ARG...`. Started by `agents`.

BENCH_POLL_SECONDS has it look at its file so often. SIGUSR1 has it load what only a cluster makes an agent load.
"""

from __future__ import annotations

import asyncio
import gc
import importlib
import logging
import os
import signal
import ssl
import sys
from pathlib import Path

# As `gpushare agent` does before it runs.
os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "__all__")
gc.disable()

import pynvml  # noqa: F401 - the real agent has loaded it, so that its time and memory count

from gpushare.agent import app
from gpushare.nvml.simulated import SimulatedNvml
from gpushare.serving.processes import collect_later

IN_A_CLUSTER = (
    "gpushare.agent.monitoring",
    "gpushare.agent.publishing",
    "gpushare.agent.reporting",
    "gpushare.kube.credentials",
    "gpushare.kube.lean",
    "gpushare.kube.watching",
    "gpushare.serving.listening",
)
PLACE = ("KUBERNETES_SERVICE_HOST", "KUBERNETES_SERVICE_PORT", "NODE_NAME")
"""Of the environment: where it is in a cluster."""


async def main(root: str, gpus: str, argv: list[str]) -> int:
    """Runs until SIGTERM."""
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    collect_later(loop)
    loop.add_signal_handler(signal.SIGTERM, stop.set)
    loop.add_signal_handler(signal.SIGUSR1, load_everything)
    if "BENCH_POLL_SECONDS" in os.environ:
        look_often(float(os.environ["BENCH_POLL_SECONDS"]))
    nvml = SimulatedNvml.from_mapping({"gpus": [{"model": "A100-SXM4-40GB", "count": int(gpus)}]}, seed="bench")
    place = {name: os.environ[name] for name in PLACE if name in os.environ}
    return await app.run(argv, place, root=Path(root), nvml=nvml, log=logging.getLogger("agent"), stop=stop)


def load_everything() -> None:
    """Weighs what is loaded, and a TLS context, which a connection to an API server needs."""
    for name in IN_A_CLUSTER:
        importlib.import_module(name)
    ssl.create_default_context()


def look_often(seconds: float) -> None:
    """A changed file is seen at once, so that what follows is what is measured."""
    from gpushare.agent import configuration

    configuration.FILE_POLL_SECONDS = configuration.SETTLE_SECONDS = seconds


sys.exit(asyncio.run(main(sys.argv[1], sys.argv[2], sys.argv[3:])))
