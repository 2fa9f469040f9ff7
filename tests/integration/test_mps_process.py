"""The MPS process as a process of its own: how it ends, and what it finds when it comes back after a sudden end."""

from __future__ import annotations

import asyncio
import contextlib
import json
import signal
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from gpushare.host import processes
from gpushare.host.mps import CONTROL
from support.mps_nodes import GPU, MpsNode, mps, until
from support.mps_programs import daemon_pid, kill_daemon

FORBIDDEN = ("kopf", "kubernetes", "jinja2", "aiohttp", "click", "grpc", "gpushare.api.clusterpolicy", "gpushare.plan")

PROGRAM = """
import asyncio, json, logging, signal, sys
from pathlib import Path

from gpushare.mps import app
from gpushare.nvml.simulated import SimulatedNvml

async def main(root, path):
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    loop.add_signal_handler(signal.SIGTERM, stop.set)
    loop.add_signal_handler(signal.SIGUSR1, lambda: print(json.dumps(sorted(sys.modules)), flush=True))
    nvml = SimulatedNvml.from_mapping({"gpus": [{"model": "Tesla-T4", "count": 2}]}, seed="node")
    argv, environ = ["--config-file=/config.yaml"], {"PATH": path}
    return await app.run(argv, environ, root=Path(root), nvml=nvml, log=logging.getLogger("mps"), stop=stop)

sys.exit(asyncio.run(main(*sys.argv[1:])))
"""


@pytest.fixture
async def node(tmp_path: Path) -> AsyncIterator[MpsNode]:
    made = MpsNode(tmp_path)
    made.configure(mps(4))
    yield made
    kill_daemon(tmp_path, GPU)


@contextlib.asynccontextmanager
async def process_on(node: MpsNode) -> AsyncIterator[asyncio.subprocess.Process]:
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-c", PROGRAM, str(node.root), node.programs.environ["PATH"], stdout=subprocess.PIPE
    )
    try:
        yield process
    finally:
        if process.returncode is None:
            process.kill()
        await process.communicate()


async def test_ends_when_told(node: MpsNode) -> None:
    """SIGTERM ends the daemon and gives the GPUs back; the status is 0. It never loads what only others need."""
    async with process_on(node) as process:
        await until(node.runs)
        process.send_signal(signal.SIGUSR1)
        assert process.stdout is not None
        assert not set(FORBIDDEN) & set(json.loads(await process.stdout.readline()))

        process.terminate()

        assert await process.wait() == 0
    assert daemon_pid(node.root, GPU) is None
    assert node.programs.smi_commands[-1].endswith("-c DEFAULT")


async def test_killed_and_back(node: MpsNode) -> None:
    """The next process goes on with the daemon, if it is as it should be: no client notices."""
    async with process_on(node) as process:
        await until(node.runs)
        process.kill()
    pid = daemon_pid(node.root, GPU)
    assert pid is not None
    assert processes.is_alive(pid, CONTROL)
    (node.root / "mps/.ready").unlink()

    async with process_on(node) as process:
        await until((node.root / "mps/.ready").exists)
        assert daemon_pid(node.root, GPU) == pid
        assert "quit" not in node.programs.told


@pytest.mark.parametrize(
    ("text", "told"),
    [
        pytest.param("version: v1\n", ["quit"], id="nothing is shared"),
        pytest.param(
            mps(2),
            [
                "quit",
                "set_default_device_pinned_mem_limit 0 7680M",
                "set_default_device_pinned_mem_limit 1 7680M",
                "set_default_active_thread_percentage 50",
            ],
            id="other limits",
        ),
    ],
)
async def test_killed_and_changed(node: MpsNode, text: str, told: list[str]) -> None:
    """What changed while nobody looked is put right: daemons end, GPUs that nobody shares are everybody's."""
    async with process_on(node) as process:
        await until(node.runs)
        process.kill()
    node.programs.forget()
    node.configure(text)

    async with process_on(node):
        await until(lambda: len(node.programs.told) == len(told) and node.programs.smi_commands)
        assert node.programs.told == told
        mode = "EXCLUSIVE_PROCESS" if "mps" in text else "DEFAULT"
        await until(lambda: sorted(node.programs.smi_commands) == sorted(f"-i {u} -c {mode}" for u in node.uuids))


@pytest.mark.parametrize(
    ("argv", "code", "text"),
    [
        pytest.param(["--help"], 0, "gpushare mps mount-shm", id="help"),
        pytest.param(["--no-such-flag"], 2, "unknown flag '--no-such-flag'; see --help", id="unknown flag"),
        pytest.param(["mount"], 2, "unknown argument 'mount'", id="unknown subcommand"),
        pytest.param(["--mig-strategy", "half"], 2, "'half' is none of none, single, mixed", id="bad value"),
    ],
)
async def test_command_line(argv: list[str], code: int, text: str) -> None:
    """Wrong usage ends with 2 and says what is wrong."""
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "gpushare", "mps", *argv, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    )
    output, _ = await process.communicate()

    assert process.returncode == code
    assert text in output.decode()


MOUNT = """
import asyncio, logging, os, sys
from pathlib import Path

from gpushare.mps import app
from gpushare.nvml.simulated import SimulatedNvml

logging.basicConfig()
root = Path(sys.argv[1])
run = app.run(
    ["mount-shm"], {}, root=root, nvml=SimulatedNvml.from_mapping({}), log=logging.getLogger("mps"), stop=asyncio.Event()
)
code = asyncio.run(run)
print(os.path.ismount(root / "mps/shm"))
sys.exit(code)
"""
CAN_MOUNT = subprocess.run(["unshare", "--mount", "true"], check=False, capture_output=True).returncode == 0


@pytest.mark.skipif(not CAN_MOUNT, reason="needs the right to mount")
def test_mount_shm(tmp_path: Path) -> None:
    """The subcommand mounts and ends; where it cannot, it fails and says where."""
    words = ["unshare", "--mount", sys.executable, "-c", MOUNT]

    done = subprocess.run([*words, str(tmp_path)], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "True\n")

    (tmp_path / "x").mkdir()
    (tmp_path / "x/mps").touch()
    done = subprocess.run([*words, str(tmp_path / "x")], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (1, "False\n")
    assert "shared memory cannot be mounted" in done.stderr
