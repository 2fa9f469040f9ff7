"""One agent as a process of its own, with simulated GPUs: `agent_process.py ROOT GPUS ARG...`. Started by `agent`."""

from __future__ import annotations

import asyncio
import gc
import logging
import os
import signal
import sys
from pathlib import Path

from gpushare.cli.main import GARBAGE

# As `gpushare agent` does before it runs.
os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "__all__")
gc.set_threshold(GARBAGE)

import pynvml  # noqa: F401 - the real agent has loaded it, so that its time and memory count

from gpushare.agent import app
from gpushare.nvml.simulated import SimulatedNvml


async def main(root: str, gpus: str, argv: list[str]) -> int:
    """Runs until SIGTERM."""
    stop = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop.set)
    nvml = SimulatedNvml.from_mapping({"gpus": [{"model": "A100-SXM4-40GB", "count": int(gpus)}]}, seed="bench")
    return await app.run(argv, {}, root=Path(root), nvml=nvml, log=logging.getLogger("agent"), stop=stop)


sys.exit(asyncio.run(main(sys.argv[1], sys.argv[2], sys.argv[3:])))
