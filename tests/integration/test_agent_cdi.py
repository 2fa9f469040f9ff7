"""The running agent and container runtimes: what is described by CDI follows what is offered."""

from __future__ import annotations

import asyncio
import json
import logging
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from gpushare.agent import configuration, devices, holding, host_watching
from gpushare.host.cdi import path_of
from gpushare.kubelet.values import ContainerDevices
from support.agents import GPU, STOP_SECONDS, Machine, machine, until_logged
from support.driver_roots import CONTROL_NODES, install_driver, make_nodes

A100: dict[str, object] = {"driver": {"version": "550.90.07"}, "gpus": [{"model": "A100-SXM4-40GB", "count": 2}]}
BY_CDI = "flags: {migStrategy: single, plugin: {deviceListStrategy: [cdi-annotations, cdi-cri]}}\n"
BY_NAME = "flags: {migStrategy: single}\n"
CAPS = {f"/dev/nvidia-caps/nvidia-cap{number}": (235, number) for number in range(3, 400)}


@pytest.fixture(autouse=True)
def _impatient(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    monkeypatch.setattr(configuration, "FILE_POLL_SECONDS", 0.02)
    monkeypatch.setattr(devices, "WAIT_SECONDS", 0.05)
    monkeypatch.setattr(devices, "READ_SECONDS", 0.2)
    monkeypatch.setattr(holding, "PAUSE_SECONDS", 0.05)
    monkeypatch.setattr(host_watching, "LOOK_SECONDS", 0.05)


@pytest.fixture
def node() -> Iterator[Machine]:
    with machine(A100) as made:
        install_driver(made.root / "driver-root")
        make_nodes(made.root, {**CONTROL_NODES, "/dev/nvidia0": (195, 0), "/dev/nvidia1": (195, 1), **CAPS})
        made.kubelet.start()
        made.configure(BY_CDI)
        yield made


def file_of(node: Machine, kind: str = "gpu") -> Path:
    return node.root / path_of(kind).lstrip("/")


def described(node: Machine) -> list[str]:
    """Names in the specification; none where there is none."""
    try:
        return [device["name"] for device in json.loads(file_of(node).read_text())["devices"]]
    except FileNotFoundError:
        return []


async def until_described(node: Machine, names: list[str]) -> None:
    async with asyncio.timeout(STOP_SECONDS):
        while described(node) != names:  # noqa: ASYNC110 - nobody tells of a file
            await asyncio.sleep(0.02)


async def test_described_before_offered(node: Machine) -> None:
    """Whoever is given a device finds it described, by both names; the files stay when the agent goes."""
    async with node.with_config():
        await node.kubelet.until(lambda: node.kubelet.total(GPU) == 2)
        assert described(node) == node.uuids()
        (answer,) = await asyncio.to_thread(node.kubelet.clients[GPU].allocate, [[node.uuids()[1]]])

        name = f"k8s.device-plugin.nvidia.com/gpu={node.uuids()[1]}"
        assert answer.cdi_devices == (name,)
        assert list(answer.annotations.values()) == [name]
        assert (answer.envs, answer.devices, answer.mounts) == ({}, (), ())

    assert described(node) == node.uuids()


async def test_devices_change(node: Machine) -> None:
    """A divided GPU is described by its instances, before they are offered."""
    async with node.with_config():
        await node.kubelet.until(lambda: node.kubelet.total(GPU) == 2)
        for index in (0, 1):
            node.nvml.split(index, ["3g.20gb", "3g.20gb"])
        await node.kubelet.until(lambda: node.kubelet.total(GPU) == 4)
        assert described(node) == node.kubelet.ids(GPU)


async def test_removed_by_somebody(node: Machine) -> None:
    """A folder that somebody has emptied is filled again."""
    async with node.with_config():
        await until_described(node, node.uuids())
        shutil.rmtree(file_of(node).parent)
        await until_described(node, node.uuids())


async def test_no_longer_wanted(node: Machine, caplog: pytest.LogCaptureFixture) -> None:
    """Files of a strategy that is over stay as long as a container holds a device, since it may be restarted; then they go."""
    uuid = node.uuids()[0]
    node.holders.append(ContainerDevices(namespace="n", pod="p", container="c", resource=GPU, ids=(uuid,)))
    async with node.with_config():
        await node.kubelet.until(lambda: node.kubelet.total(GPU) == 2)
        node.configure(BY_NAME)
        async with asyncio.timeout(STOP_SECONDS):
            while not await asyncio.to_thread(answers_by_name, node, uuid):
                pass
        await asyncio.sleep(host_watching.LOOK_SECONDS * 6)  # nothing must go
        assert described(node) == node.uuids()

        node.holders.clear()
        await until_logged(caplog, "CDI specifications removed")
        assert described(node) == []


def answers_by_name(node: Machine, uuid: str) -> bool:
    (answer,) = node.kubelet.clients[GPU].allocate([[uuid]])
    return answer.envs == {"NVIDIA_VISIBLE_DEVICES": uuid}


async def test_kubelet_that_does_not_tell(node: Machine) -> None:
    """Who holds what is not known: nothing is removed."""
    async with node.with_config():
        await until_described(node, node.uuids())
        (node.root / "var/lib/kubelet/pod-resources/kubelet.sock").unlink()
        node.configure(BY_NAME)
        await asyncio.sleep(host_watching.LOOK_SECONDS * 10)  # nothing must go
        assert described(node) == node.uuids()


async def test_channel_that_comes_late(node: Machine, caplog: pytest.LogCaptureFixture) -> None:
    """A required IMEX channel without a device node is reported; when the node is there, containers get it."""
    node.configure(BY_CDI + "imex: {channelIDs: [0], required: true}\n")
    async with node.with_config():
        await until_logged(caplog, "configuration refused")
        await node.kubelet.until(lambda: node.kubelet.total(GPU) == 2)
        make_nodes(node.root, {"/dev/nvidia-caps-imex-channels/channel0": (510, 7)})
        await until_logged(caplog, "configuration in force")
        (answer,) = await asyncio.to_thread(node.kubelet.clients[GPU].allocate, [[node.uuids()[0]]])

        assert answer.cdi_devices[-1] == "k8s.device-plugin.nvidia.com/imex-channel=0"
        assert file_of(node, "imex-channel").exists()


async def test_device_node_that_is_missing(node: Machine) -> None:
    """Its GPU is shown as unhealthy until the node is there."""
    (node.root / "dev/nvidia1").unlink()
    async with node.with_config():
        await node.kubelet.until(lambda: node.kubelet.ids(GPU) == node.uuids()[:1] and node.kubelet.total(GPU) == 2)
        make_nodes(node.root, {"/dev/nvidia1": (195, 1)})
        await node.kubelet.until(lambda: node.kubelet.ids(GPU) == node.uuids())
