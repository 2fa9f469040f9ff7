"""`gpushare labels` as a process that runs for long: what it follows, what it survives, what it leaves behind."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from gpushare.domain import manifests
from gpushare.kube.credentials import from_kubeconfig
from gpushare.kube.lean import LeanCluster
from gpushare.sandbox.apiserver.server import ApiServer, Settings
from support.nvml_library import LIBRARY, Stub, build_library, write_stub

T4S = "gpus 4 T4\n"
SHARED = "sharing: {timeSlicing: {resources: [{name: nvidia.com/gpu, replicas: %d}]}}\n"
COUNT, REPLICAS, TIMESTAMP = "nvidia.com/gpu.count", "nvidia.com/gpu.replicas", "nvidia.com/gfd.timestamp"
WAIT_SECONDS = 60
FILE = "--use-node-feature-api=false"


@pytest.fixture
def stub(tmp_path: Path) -> Stub:
    return write_stub(tmp_path, T4S)


@contextlib.asynccontextmanager
async def labelling(stub: Stub, *argv: str, **environ: str) -> AsyncIterator[asyncio.subprocess.Process]:
    """The process; it must be there still when the test is done with it, and end well when it is told to."""
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "gpushare", "labels", *argv, env=os.environ | stub.environ | environ
    )
    try:
        yield process
        assert process.returncode is None
        process.send_signal(signal.SIGTERM)
        async with asyncio.timeout(WAIT_SECONDS):
            assert await process.wait() == 0
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()


def once(stub: Stub, *argv: str, environ: Mapping[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    """One shot; with its output."""
    command = [sys.executable, "-m", "gpushare", "labels", "--oneshot", *argv]
    return subprocess.run(
        command,
        env=os.environ | stub.environ | (environ or {}),
        capture_output=True,
        text=True,
        check=False,
        timeout=WAIT_SECONDS,
    )


def labels_in(path: Path) -> dict[str, str]:
    """Labels in the file; none where there is no file."""
    return dict(line.split("=", 1) for line in path.read_text().splitlines()) if path.exists() else {}


async def until(holds: Callable[[], bool]) -> None:
    async with asyncio.timeout(WAIT_SECONDS):
        while not holds():  # noqa: ASYNC110 - a file has no event
            await asyncio.sleep(0.02)


async def test_follows_its_configuration(stub: Stub, tmp_path: Path) -> None:
    """However long it is to sleep: a changed text is seen, a broken one changes nothing, and the time stays that of the start."""
    output, config = tmp_path / "labels", tmp_path / "config.yaml"
    config.write_text(SHARED % 2)
    argv = [FILE, f"--output-file={output}", f"--config-file={config}", "--sleep-interval=infinite"]

    async with labelling(stub, *argv):
        await until(lambda: labels_in(output).get(REPLICAS) == "2")
        began = labels_in(output)[TIMESTAMP]
        config.write_text("version: v9\n")
        config.write_text(SHARED % 3)
        await until(lambda: labels_in(output).get(REPLICAS) == "3")
        assert labels_in(output)[TIMESTAMP] == began


async def test_hangup(stub: Stub, tmp_path: Path) -> None:
    """SIGHUP labels anew; the file is there all the time, also when all is over."""
    output = tmp_path / "labels"

    async with labelling(stub, FILE, f"--output-file={output}", "--sleep-interval=infinite") as process:
        await until(lambda: labels_in(output).get(COUNT) == "4")
        file = output.stat().st_ino
        stub.describe("gpus 3 T4\n")
        process.send_signal(signal.SIGHUP)
        await until(lambda: labels_in(output).get(COUNT) == "3")
        assert output.stat().st_ino != file  # replaced as a whole, never emptied

    assert labels_in(output)[COUNT] == "3"


async def test_time_after_time(stub: Stub, tmp_path: Path) -> None:
    """Devices that appear and vanish are seen at the next reading, with the time of the start."""
    output = tmp_path / "labels"

    async with labelling(stub, FILE, f"--output-file={output}", "--sleep-interval=100ms"):
        await until(lambda: labels_in(output).get(COUNT) == "4")
        began = labels_in(output)[TIMESTAMP]
        stub.describe("gpus 9 T4\n")
        await until(lambda: labels_in(output).get(COUNT) == "9")
        output.unlink()
        await until(lambda: labels_in(output).get(COUNT) == "9")
        assert labels_in(output)[TIMESTAMP] == began


async def test_a_driver_that_comes_later(stub: Stub, tmp_path: Path) -> None:
    """A node whose driver is not there yet is labelled once it is; nobody has to start anything again."""
    output = tmp_path / "labels"
    stub.describe("fail nvmlInitWithFlags 9\n")

    async with labelling(stub, FILE, f"--output-file={output}"):
        stub.describe(T4S)
        await until(lambda: labels_in(output).get(COUNT) == "4")


def test_standard_output(stub: Stub) -> None:
    """Without a file the labels are printed, and nothing else is."""
    ended = once(stub, FILE, "--output-file=", "--no-timestamp")

    assert ended.returncode == 0
    assert f"{COUNT}=4\n" in ended.stdout
    assert all("=" in line for line in ended.stdout.splitlines())


def test_the_library_below_the_driver_root(stub: Stub, tmp_path: Path) -> None:
    """A container that has the host's driver somewhere needs no path of the loader."""
    folder = tmp_path / "driver" / "usr" / "lib64"
    folder.mkdir(parents=True)
    (folder / LIBRARY).symlink_to(build_library())
    (tmp_path / LIBRARY).write_text("no library\n")

    ended = once(
        stub, FILE, "--output-file=", f"--driver-root-ctr-path={tmp_path / 'driver'}", environ={"LD_LIBRARY_PATH": ""}
    )

    assert f"{COUNT}=4\n" in ended.stdout


@pytest.mark.parametrize(
    ("argv", "status", "text"),
    [
        pytest.param(["--no-such-flag"], 2, "gpushare labels: unknown flag '--no-such-flag'", id="flag"),
        pytest.param(["--mig-strategy=many"], 2, "is none of none, single, mixed", id="value"),
        pytest.param(["--node-name=gpu01"], 2, "--use-node-feature-api=false for a file", id="no cluster"),
        pytest.param([FILE, "--output-file=/proc/none/gfd"], 1, "labels cannot be written", id="no place"),
        pytest.param([FILE, "--config-file=/nowhere"], 1, "/nowhere: cannot be read", id="no configuration"),
    ],
)
def test_failures_of_one_shot(stub: Stub, argv: list[str], status: int, text: str) -> None:
    """Each with a text and a status of its kind."""
    ended = once(stub, *argv)

    assert (ended.returncode, ended.stdout) == (status, "")
    assert text in ended.stderr


def test_a_gpu_that_cannot_be_read(stub: Stub, tmp_path: Path) -> None:
    """One shot has no second try: nothing is written rather than less than there is."""
    stub.describe(f"{T4S}lost 2\n")

    ended = once(stub, FILE, f"--output-file={tmp_path / 'labels'}")

    assert ended.returncode == 1
    assert "GPU 2 cannot be read" in ended.stderr
    assert not (tmp_path / "labels").exists()


NODE_FEATURES = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "nodefeatures.nfd.k8s-sigs.io"},
    "spec": {
        "group": "nfd.k8s-sigs.io",
        "scope": "Namespaced",
        "names": {"kind": "NodeFeature", "plural": "nodefeatures", "singular": "nodefeature"},
        "versions": [
            {
                "name": "v1alpha1",
                "served": True,
                "storage": True,
                "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}},
            }
        ],
    },
}


@pytest.fixture
async def cluster(tmp_path: Path) -> AsyncIterator[LeanCluster]:
    """A cluster that knows NodeFeature objects; its kubeconfig is `kubeconfig` in the folder."""
    server = await ApiServer.start(Settings())
    (tmp_path / "kubeconfig").write_text(yaml.safe_dump(server.kubeconfig("admin")))
    admin = LeanCluster(from_kubeconfig(tmp_path / "kubeconfig"))
    yield admin
    await admin.close()
    await server.stop()


async def until_written(cluster: LeanCluster, count: str) -> Any:
    """The object, once it says that the node has so many GPUs."""
    async with asyncio.timeout(WAIT_SECONDS):
        while True:
            found = (await cluster.list(manifests.NODE_FEATURE, "default")).items
            if found and found[0]["spec"]["labels"].get(COUNT) == count:
                return found[0]
            await asyncio.sleep(0.05)


async def test_an_object_in_the_cluster(cluster: LeanCluster, stub: Stub, tmp_path: Path) -> None:
    """Without a file the labels are an object of the node; where the kind is not there yet, it is tried again."""
    argv = [f"--kubeconfig={tmp_path / 'kubeconfig'}", "--sleep-interval=200ms"]

    async with labelling(stub, *argv, NODE_NAME="gpu01"):
        await cluster.create(NODE_FEATURES)
        await until_written(cluster, "4")
        stub.describe("gpus 2 T4\n")
        await until_written(cluster, "2")

    left = await until_written(cluster, "2")
    assert left["metadata"]["name"] == "nvidia-features-for-gpu01"
    assert left["metadata"]["labels"] == {"nfd.node.kubernetes.io/node-name": "gpu01"}
    assert left["metadata"]["generation"] == 2
