"""What was recorded of the life of NVIDIA's device plugin, put to the agent as a process of its own, on a true library of ours.

Where ours differs it is on purpose: a deleted socket is noticed, SIGHUP disturbs nobody, and an idle agent costs nothing.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import sys
from collections.abc import AsyncIterator, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from gpushare.kubelet.server import PluginClient
from gpushare.kubelet.values import CallFailed, PreferenceRequest
from support.agents import GPU, Machine, machine
from support.nvml_library import Stub, build_library, write_stub
from support.recorded_cases import DATA, read_cases

RECORDED = json.loads((DATA / "lifecycle.json").read_text())
PROGRAM = """
import os, sys
from pathlib import Path
from gpushare.agent import app
sys.exit(app.main(sys.argv[2:], os.environ, root=Path(sys.argv[1])))
"""
NODE = "driver 550.90.07\ncuda 12040\ngpus 4 T4\n"
READY_SECONDS = 60.0


@pytest.fixture
def node() -> Iterator[Machine]:
    with machine() as made:
        yield made


@pytest.fixture
def stub(tmp_path: Path) -> Stub:
    return write_stub(tmp_path, NODE)


@contextlib.asynccontextmanager
async def agent_of(
    node: Machine, stub: Stub, *flags: str, environ: Mapping[str, str] | None = None
) -> AsyncIterator[asyncio.subprocess.Process]:
    """One that the test ends in its own way, or that is killed."""
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-c", PROGRAM, str(node.root), *flags,
        env={**os.environ, **stub.environ, **(environ or {})},
        stderr=asyncio.subprocess.DEVNULL,
    )  # fmt: skip
    try:
        yield process
    finally:
        if process.returncode is None:
            process.kill()
        await process.wait()


def socket_of(node: Machine) -> Path:
    return node.kubelet.directory / "nvidia-gpu.sock"


async def until_served(node: Machine) -> None:
    await node.kubelet.until(lambda: node.kubelet.total(GPU) == 4)


async def test_sigterm(node: Machine, stub: Stub) -> None:
    """It ends well, its streams end, and no socket is left."""
    node.kubelet.start()
    async with agent_of(node, stub) as process:
        await until_served(node)
        process.send_signal(signal.SIGTERM)
        await node.kubelet.until(lambda: node.kubelet.ended == [GPU])

        assert await process.wait() == 0
    assert socket_of(node).exists() is not RECORDED["socket_removed_on_sigterm"]


async def test_sigkill(node: Machine, stub: Stub) -> None:
    """The socket stays, and the next agent takes its place."""
    node.kubelet.start()
    async with agent_of(node, stub) as process:
        await until_served(node)
        process.kill()
        await process.wait()
    assert socket_of(node).exists() is RECORDED["socket_left_after_sigkill"]

    node.kubelet.lists.clear()
    async with agent_of(node, stub):
        await until_served(node)


async def test_sighup_disturbs_nobody(node: Machine, stub: Stub) -> None:
    """The recorded program drops its streams and registers again; changes are followed without."""
    node.kubelet.start()
    async with agent_of(node, stub) as process:
        await until_served(node)
        process.send_signal(signal.SIGHUP)
        client = node.kubelet.clients[GPU]
        for _ in range(5):
            await asyncio.to_thread(client.allocate, [[node.kubelet.ids(GPU)[0]]])
            await asyncio.sleep(0.1)

        assert node.kubelet.registered() == [GPU]
        assert node.kubelet.ended == []


async def test_no_kubelet_yet(node: Machine, stub: Stub) -> None:
    """It waits, and is there as soon as the kubelet is."""
    async with agent_of(node, stub) as process:
        async with asyncio.timeout(READY_SECONDS):
            while not socket_of(node).exists():  # noqa: ASYNC110 - a file has no event
                await asyncio.sleep(0.05)
        assert process.returncode is RECORDED["no_kubelet_exit_after_8s"]
        node.kubelet.start()
        await until_served(node)


async def test_driver_that_fails_at_first(node: Machine, stub: Stub) -> None:
    """The recorded program ends; ours shows no GPU, and shows them when the driver answers."""
    assert read_case("t4x4-nvml-initfail")["exit_code_before_stop"] == 1
    stub.describe(NODE + "fail nvmlInitWithFlags 9\n")
    node.kubelet.start()
    async with agent_of(node, stub):
        await node.kubelet.until(lambda: node.kubelet.total(GPU) == 0)
        stub.describe(NODE)
        await until_served(node)


async def test_no_library(node: Machine, stub: Stub) -> None:
    """Nothing is offered, nothing ends, and it stops well."""
    case = read_case("t4x4-nolib-nofail")
    node.kubelet.start()
    async with agent_of(node, stub, *case["flags"], environ=case["env"]) as process:
        await node.kubelet.until(lambda: node.kubelet.total(GPU) == 0)
        assert process.returncode is case["exit_code_before_stop"]
        process.send_signal(signal.SIGTERM)

        assert await process.wait() == case["exit_code_on_sigterm"]


async def test_driver_that_is_installed_later(node: Machine, stub: Stub, tmp_path: Path) -> None:
    """Its library is found where it was not when the agent started."""
    root = tmp_path / "driver-root"
    nowhere = {"LD_LIBRARY_PATH": "/nonexistent"}
    node.kubelet.start()
    async with agent_of(node, stub, f"--driver-root-ctr-path={root}", environ=nowhere):
        await node.kubelet.until(lambda: node.kubelet.total(GPU) == 0)
        (root / "usr/lib64").mkdir(parents=True)
        (root / "usr/lib64/libnvidia-ml.so.1").symlink_to(build_library())
        await until_served(node)


def read_case(name: str) -> dict[str, Any]:
    return next(case.body for case in read_cases("plugin") if case.name == name)


async def test_kubelet_restarts(node: Machine, stub: Stub) -> None:
    """As often as it likes: each time it removes all sockets, forgets everything, and is told again."""
    node.kubelet.start()
    async with agent_of(node, stub):
        for _ in RECORDED["kubelet_restart_to_listandwatch_ms"]:
            await until_served(node)
            node.kubelet.lists.clear()
            await asyncio.to_thread(node.kubelet.restart)
        await until_served(node)


async def test_own_socket_deleted(node: Machine, stub: Stub) -> None:
    """The recorded program does not notice; ours is back."""
    assert not RECORDED["own_socket_deleted_recreated_within_3s"]
    node.kubelet.start()
    async with agent_of(node, stub):
        await until_served(node)
        socket_of(node).unlink()
        await node.kubelet.until(lambda: len(node.kubelet.registrations) == 2)

        assert socket_of(node).exists()


async def test_a_client_that_gives_up_costs_nothing(node: Machine, stub: Stub) -> None:
    """The recorded program goes on computing a preference that nobody waits for any longer."""
    node.kubelet.start()
    async with agent_of(node, stub) as process:
        await until_served(node)
        await until_idle(process.pid)
        request = PreferenceRequest(available=tuple(node.kubelet.ids(GPU)), size=2)
        hasty = PluginClient(socket_of(node), call_seconds=0.0001)
        for _ in range(20):
            with contextlib.suppress(CallFailed):
                await asyncio.to_thread(hasty.preferred, [request])
        hasty.close()
        before = cpu_seconds(process.pid)
        await asyncio.sleep(2.0)

        assert cpu_seconds(process.pid) - before < RECORDED["cpu_seconds_in_5s_after_client_gave_up"] / 5


async def until_idle(pid: int) -> None:
    """What the first list does not need is loaded after it."""
    before = -1.0
    while (used := cpu_seconds(pid)) - before > 0.1:
        before = used
        await asyncio.sleep(0.5)


def cpu_seconds(pid: int) -> float:
    user, system = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[11:13]
    return (int(user) + int(system)) / os.sysconf("SC_CLK_TCK")
