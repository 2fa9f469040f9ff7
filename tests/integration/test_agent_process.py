"""The agent as a process of its own: what it loads, how it begins and ends."""

from __future__ import annotations

import asyncio
import contextlib
import json
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator

import pytest

from support.agents import GPU, Machine, machine, time_slicing

FORBIDDEN = (
    "kopf",
    "kubernetes",
    "jinja2",
    "aiohttp",
    "click",
    "cryptography",
    "gpushare.api.clusterpolicy",
    "gpushare.plan",
)
AFTER_FIRST_LIST = ("pydantic", "yaml", "h11", "prometheus_client", "gpushare.kube.lean", "gpushare.agent.publishing")
OF_FRACTIONS = (
    "gpushare.agent.fractions",
    "gpushare.sharing.fractions",
    "gpushare.sharing.limits",
    "gpushare.host.hami_core",
)
"""Needed on nodes that give out parts of GPUs, and nowhere else."""
NOT_BEFORE = (
    *AFTER_FIRST_LIST,
    *(
        "gpushare.allocation",
        "gpushare.domain.gpunode",
        "gpushare.kube.cluster",
        "gpushare.labels",
        "gpushare.sharing.cdi",
        "uuid",
    ),
)

PROGRAM = """
import asyncio, json, logging, signal, sys
from pathlib import Path

import pynvml
from gpushare.agent import app
from gpushare.nvml.simulated import SimulatedNvml

async def main(root, *argv):
    stop, told = asyncio.Event(), asyncio.Event()
    loop = asyncio.get_running_loop()
    loop.add_signal_handler(signal.SIGTERM, stop.set)
    loop.add_signal_handler(signal.SIGUSR1, lambda: print(json.dumps(sorted(sys.modules)), flush=True))
    nvml = SimulatedNvml.from_mapping({"gpus": [{"model": "Tesla-T4", "count": 4}]}, seed="node")
    return await app.run(argv, {}, root=Path(root), nvml=nvml, log=logging.getLogger("agent"), stop=stop)

sys.exit(asyncio.run(main(*sys.argv[1:])))
"""


@pytest.fixture
def node() -> Iterator[Machine]:
    with machine() as made:
        made.kubelet.start()
        yield made


@contextlib.asynccontextmanager
async def running(node: Machine, *argv: str) -> AsyncIterator[asyncio.subprocess.Process]:
    """An agent process that ends well when it is told to."""
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-c", PROGRAM, str(node.root), *argv, stdout=subprocess.PIPE
    )
    try:
        yield process
        process.send_signal(signal.SIGTERM)
        await process.communicate()
        assert process.returncode == 0
    finally:
        if process.returncode is None:
            process.kill()
            await process.communicate()


async def modules_of(process: asyncio.subprocess.Process) -> set[str]:
    process.send_signal(signal.SIGUSR1)
    assert process.stdout is not None
    return set(json.loads(await process.stdout.readline()))


async def test_loads_little(node: Machine) -> None:
    """Never what only the controller needs; and what the first list does not need, not before it."""
    node.configure(time_slicing(4))
    async with running(node, "--config-file", "/config.yaml") as process:
        await node.kubelet.until(lambda: node.kubelet.total(GPU) == 16)
        assert not {*FORBIDDEN, *OF_FRACTIONS} & await modules_of(process)
    assert not (node.kubelet.directory / "nvidia-gpu.sock").exists()

    node.kubelet.lists.clear()
    async with running(node, "--config-file", "/config.yaml") as process:
        await node.kubelet.until(lambda: node.kubelet.total(GPU) == 16)
        assert not {*FORBIDDEN, *AFTER_FIRST_LIST} & await modules_of(process)


def test_what_is_loaded_before_anything_runs() -> None:
    """Each class of values costs half a millisecond: what the first list does not need comes after it."""
    program = f"import sys; import gpushare.agent.app; print(sorted(set(sys.modules) & set({NOT_BEFORE})))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)

    assert done.stdout.strip() == "[]"


@pytest.mark.parametrize(
    ("argv", "code", "text"),
    [
        pytest.param(["--help"], 0, "--device-list-strategy", id="help"),
        pytest.param(["--no-such-flag"], 2, "unknown flag '--no-such-flag'; see --help", id="unknown flag"),
        pytest.param(["--mig-strategy", "half"], 2, "'half' is none of none, single, mixed", id="bad value"),
    ],
)
async def test_command_line(argv: list[str], code: int, text: str) -> None:
    """Wrong usage ends with 2 and says what is wrong."""
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "gpushare", "agent", *argv, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    )
    output, _ = await process.communicate()

    assert process.returncode == code
    assert text in output.decode()
