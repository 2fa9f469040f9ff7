"""`kubectl logs` of pods on simulated nodes, through the API server."""

from __future__ import annotations

import asyncio
import itertools
import os
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import yaml

from gpushare.domain import manifests
from gpushare.sandbox.node.specs import Invocation
from support.simulated_nodes import Nodes, container, running

KUBECTL = Path(sys.executable).parent / "kubectl"
pytestmark = pytest.mark.skipif(not KUBECTL.exists(), reason="no kubectl in the virtual environment")


class Chatty:
    """A program that says what it is told to, run after run."""

    def __init__(self) -> None:
        self.lines: asyncio.Queue[str] = asyncio.Queue()
        self.runs = itertools.count(1)

    async def run(self, call: Invocation) -> int:
        call.log.info("run %d", next(self.runs))
        talking = asyncio.create_task(self._talk(call))
        stopping = asyncio.create_task(call.stop.wait())
        _, pending = await asyncio.wait({talking, stopping}, return_when=asyncio.FIRST_COMPLETED)
        for task in pending:
            task.cancel()
        return 0

    async def _talk(self, call: Invocation) -> None:
        while (line := await self.lines.get()) != "end":
            call.log.info(line)


@pytest.fixture
def chatty() -> Chatty:
    return Chatty()


@pytest.fixture
async def nodes(chatty: Chatty) -> AsyncIterator[Nodes]:
    async with running("gpu01", "gpu02", programs={"chat": chatty.run}) as found:
        spec = container(image="gpu-sharing-operator:1", args=["chat"])
        await found.run("chat", containers=[spec], nodeName="gpu02")
        await found.until_phase("chat", "Running")
        yield found


class Kubectl:
    """The real one, against one API server."""

    def __init__(self, nodes: Nodes, tmp_path: Path) -> None:
        self._config = tmp_path / "kubeconfig"
        self._config.write_text(yaml.safe_dump(nodes.server.kubeconfig()))
        self._environ = {**os.environ, "KUBECONFIG": str(self._config), "HOME": str(tmp_path)}

    async def start(self, *args: str) -> asyncio.subprocess.Process:
        return await asyncio.create_subprocess_exec(
            str(KUBECTL), *args, env=self._environ, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT
        )

    async def __call__(self, *args: str) -> list[str]:
        process = await self.start(*args)
        output, _ = await process.communicate()
        return output.decode().splitlines()


@pytest.fixture
def kubectl(nodes: Nodes, tmp_path: Path) -> Kubectl:
    return Kubectl(nodes, tmp_path)


async def test_flags(nodes: Nodes, kubectl: Kubectl, chatty: Chatty) -> None:
    """The flags that people use."""
    for line in ("one", "two", "end"):
        chatty.lines.put_nowait(line)
    await nodes.until(
        manifests.POD, "chat", lambda pod: pod["status"]["containerStatuses"][0]["restartCount"] == 1, "default"
    )

    assert await kubectl("logs", "chat") == ["I run 2"]
    assert await kubectl("logs", "chat", "--previous") == ["I run 1", "I one", "I two"]
    assert await kubectl("logs", "chat", "-p", "--tail=1") == ["I two"]
    assert await kubectl("logs", "chat", "-c", "main", "--since=1h") == ["I run 2"]
    (stamped,) = await kubectl("logs", "chat", "--timestamps")
    assert stamped.endswith("Z I run 2")


async def test_following(nodes: Nodes, kubectl: Kubectl, chatty: Chatty) -> None:
    """Lines come as they are printed, until the run is over."""
    process = await kubectl.start("logs", "-f", "chat")
    assert process.stdout is not None
    assert await process.stdout.readline() == b"I run 1\n"
    for line in ("one", "two"):
        chatty.lines.put_nowait(line)
        assert await process.stdout.readline() == f"I {line}\n".encode()
    chatty.lines.put_nowait("end")
    assert await process.stdout.read() == b""
    assert await process.wait() == 0


@pytest.mark.parametrize(
    ("args", "message"),
    [
        pytest.param(
            ("chat", "-p"), 'previous terminated container "main" in pod "chat" not found', id="no run before"
        ),
        pytest.param(("chat", "-c", "x"), "container x is not valid for pod chat", id="no such container"),
        pytest.param(
            ("waits",), 'container "main" in pod "waits" is waiting to start: ContainerCreating', id="not yet"
        ),
    ],
)
async def test_no_log(nodes: Nodes, kubectl: Kubectl, args: tuple[str, ...], message: str) -> None:
    """Why there is none, in the words of a real cluster."""
    volumes = [{"name": "v", "secret": {"secretName": "never"}}]
    await nodes.run("waits", containers=[container()], volumes=volumes, nodeName="gpu01")
    await nodes.until_event("FailedMount")
    (line,) = await kubectl("logs", *args)
    assert message in line


async def test_no_log_of_a_rejected_pod(nodes: Nodes, kubectl: Kubectl) -> None:
    """Its containers never were, so they are not waiting either."""
    vast = container(resources={"requests": {"cpu": "4k"}})
    await nodes.run("vast", containers=[vast], nodeName="gpu01")
    await nodes.until_phase("vast", "Failed")

    (line,) = await kubectl("logs", "vast")

    assert 'container "main" in pod "vast" is not available' in line
