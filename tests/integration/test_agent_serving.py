"""The agent beside a kubelet: what is registered, listed, answered and changed, over real gRPC."""

from __future__ import annotations

import asyncio
import json
import logging
import shutil
import socket
import urllib.error
import urllib.request
from collections.abc import Iterator

import pytest

from gpushare.agent import app, configuration, devices, holding, troubles
from gpushare.kubelet.values import CallFailed, ContainerDevices, PreferenceRequest
from gpushare.nvml.port import Event
from gpushare.nvml.simulated import SimulatedNvml
from support.agents import GPU, SHARED, T4S, Machine, devices_of, machine, time_slicing, until_logged


@pytest.fixture(autouse=True)
def _impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(configuration, "FILE_POLL_SECONDS", 0.02)
    monkeypatch.setattr(devices, "WAIT_SECONDS", 0.05)
    monkeypatch.setattr(devices, "RECOVERY_SECONDS", 0.1)
    monkeypatch.setattr(devices, "READ_SECONDS", 0.3)
    monkeypatch.setattr(troubles, "QUIET_SECONDS", 0.3)
    monkeypatch.setattr(devices, "FIRST_RETRY_SECONDS", 0.05)
    monkeypatch.setattr(holding, "PAUSE_SECONDS", 0.05)


@pytest.fixture
def node() -> Iterator[Machine]:
    with machine() as made:
        yield made


async def test_whole_gpus(node: Machine) -> None:
    """Without a configuration each GPU is a device, named by its UUID."""
    node.kubelet.start()
    async with node.agent():
        await node.kubelet.until(lambda: node.kubelet.total(GPU) == 4)

        assert node.kubelet.ids(GPU) == node.uuids()
        assert [r.endpoint for r in node.kubelet.registrations] == ["nvidia-gpu.sock"]
    assert not (node.kubelet.directory / "nvidia-gpu.sock").exists()


@pytest.mark.parametrize("turns", [2, 4, 8])
async def test_cancelled_while_it_ends(node: Machine, turns: int) -> None:
    """Whoever has no more patience, as the sandbox after the grace period, still finds no socket left behind."""
    node.kubelet.start()
    stop = asyncio.Event()
    running = asyncio.create_task(app.run((), {}, root=node.root, nvml=node.nvml, log=logging.getLogger(), stop=stop))
    await node.kubelet.until(lambda: node.kubelet.total(GPU) == 4)
    stop.set()
    for _ in range(turns):
        await asyncio.sleep(0)
    running.cancel()
    await asyncio.wait({running})
    assert running.cancelled()
    assert not (node.kubelet.directory / "nvidia-gpu.sock").exists()


async def test_allocate_and_preferred(node: Machine) -> None:
    """Shares become devices in the environment; a preference spreads; what cannot be is refused in NVIDIA's words."""
    node.kubelet.start()
    node.configure(time_slicing(2))
    async with node.with_config():
        await node.kubelet.until(lambda: node.kubelet.total(GPU) == 8)
        client, first = node.kubelet.clients[GPU], node.uuids()[0]

        answer, two = await asyncio.to_thread(client.allocate, [[f"{first}::0"], [f"{first}::0", f"{first}::1"]])
        chosen = await asyncio.to_thread(
            client.preferred, [PreferenceRequest(available=tuple(node.kubelet.ids(GPU)), size=4)]
        )
        with pytest.raises(CallFailed, match=r'request for "nvidia.com/gpu": .*unknown device: nothing') as failure:
            await asyncio.to_thread(client.allocate, [["nothing"]])

        assert answer.envs == two.envs == {"NVIDIA_VISIBLE_DEVICES": first}
        assert devices_of(chosen[0]) == set(node.uuids())
        assert failure.value.code == "UNKNOWN"


async def test_device_specs(node: Machine) -> None:
    """Device nodes are passed where that is asked for, the control devices as far as there are any."""
    node.kubelet.start()
    (node.root / "dev").mkdir()
    (node.root / "dev/nvidiactl").touch()
    async with node.agent("--pass-device-specs", environ={"NVIDIA_DEV_ROOT": "/run/nvidia/driver"}):
        await node.kubelet.until(lambda: node.kubelet.total(GPU) == 4)

        [answer] = await asyncio.to_thread(node.kubelet.clients[GPU].allocate, [[node.uuids()[1]]])

    assert [(device.container_path, device.host_path) for device in answer.devices] == [
        ("/dev/nvidiactl", "/run/nvidia/driver/dev/nvidiactl"),
        ("/dev/nvidia1", "/run/nvidia/driver/dev/nvidia1"),
    ]


async def test_reload_goes_through_the_open_stream(node: Machine) -> None:
    """A changed number of replicas is a new list, not a new registration."""
    node.kubelet.start()
    node.configure(time_slicing(4))
    async with node.with_config():
        await node.kubelet.until(lambda: node.kubelet.total(GPU) == 16)
        node.configure(time_slicing(8))
        await node.kubelet.until(lambda: node.kubelet.total(GPU) == 32)

        assert len(node.kubelet.registrations) == 1
        assert [len(devices) for devices in node.kubelet.lists[GPU]] == [16, 32]


async def test_rename_finds_one_of_the_two(node: Machine) -> None:
    """The new name is registered before the old one goes empty; the old one stays, with nothing in it."""
    node.kubelet.start()
    node.configure(time_slicing(4))
    async with node.with_config():
        await node.kubelet.until(lambda: node.kubelet.total(GPU) == 16)
        node.configure(time_slicing(4, more="renameByDefault: true,"))
        await node.kubelet.until(lambda: node.kubelet.total(GPU) == 0)

        assert node.kubelet.registered() == [GPU, SHARED]
        assert node.kubelet.ended == []
        await node.kubelet.until(lambda: node.kubelet.total(SHARED) == 16)
        node.configure(time_slicing(4))
        await node.kubelet.until(lambda: node.kubelet.total(GPU) == 16 and node.kubelet.total(SHARED) == 0)
        assert node.kubelet.registered() == [GPU, SHARED]


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("sharing: {timeSlicing: {resources: [{name: nvidia.com/gpu, replica: 4}]}}", id="unknown key"),
        pytest.param("{", id="no YAML"),
        pytest.param(
            "sharing: {timeSlicing: {resources: [{name: nvidia.com/gpu, replicas: 2, devices: [9]}]}}", id="no such GPU"
        ),
        pytest.param("imex: {channelIDs: [0], required: true}", id="a required channel is not there"),
    ],
)
async def test_bad_configuration_changes_nothing(node: Machine, text: str, caplog: pytest.LogCaptureFixture) -> None:
    """What is served stays, and a good one that follows takes effect."""
    node.kubelet.start()
    node.configure(time_slicing(4))
    async with node.with_config():
        await node.kubelet.until(lambda: node.kubelet.total(GPU) == 16)
        node.configure(text)
        await until_logged(caplog, "configuration refused")
        assert len(node.kubelet.lists[GPU]) == 1
        node.configure(time_slicing(2))
        await node.kubelet.until(lambda: node.kubelet.total(GPU) == 8)


async def test_bad_configuration_from_the_start(node: Machine) -> None:
    """Nothing was ever in force: the devices are unshared."""
    node.kubelet.start()
    node.configure("sharing: 3")
    async with node.with_config():
        await node.kubelet.until(lambda: node.kubelet.total(GPU) == 4)


async def test_restart_from_the_state_file(node: Machine) -> None:
    """The last good configuration is served though its file is gone; names that were registered are so again."""
    node.kubelet.start()
    node.configure(time_slicing(4, more="renameByDefault: true,"))
    async with node.with_config():
        await node.kubelet.until(lambda: node.kubelet.total(SHARED) == 16)
    (node.root / "config.yaml").unlink()
    node.kubelet.lists.clear()
    async with node.with_config():
        await node.kubelet.until(lambda: node.kubelet.total(SHARED) == 16 and node.kubelet.total(GPU) == 0)
        node.configure("")
        await node.kubelet.until(lambda: node.kubelet.total(SHARED) == 0 and node.kubelet.total(GPU) == 4)


async def test_damaged_state_file(node: Machine) -> None:
    """Starts afresh."""
    node.kubelet.start()
    state = node.root / "var/lib/gpushare/state.json"
    state.parent.mkdir(parents=True)
    state.write_text('{"last_good": {"content": 3')
    node.configure(time_slicing(4))
    async with node.with_config():
        await node.kubelet.until(lambda: node.kubelet.total(GPU) == 16)
    assert json.loads(state.read_text())["last_good"]["content"] == time_slicing(4)


async def test_kubelet_comes_late_and_restarts(node: Machine) -> None:
    """No kubelet is a state, and so is one that has forgotten everything."""
    async with node.agent():
        node.kubelet.start()
        for _ in range(2):
            await node.kubelet.until(lambda: node.kubelet.total(GPU) == 4)
            node.kubelet.lists.clear()
            await asyncio.to_thread(node.kubelet.restart)
        await node.kubelet.until(lambda: node.kubelet.total(GPU) == 4)


async def test_kubelets_directory_goes(node: Machine) -> None:
    """With everything in it, as when a node is set up anew; the agent is there again with the next kubelet."""
    node.kubelet.start()
    async with node.agent():
        await node.kubelet.until(lambda: node.kubelet.total(GPU) == 4)
        await asyncio.to_thread(node.kubelet.stop)
        shutil.rmtree(node.kubelet.directory)
        node.kubelet.lists.clear()
        node.kubelet.directory.mkdir()
        node.kubelet.start()
        await node.kubelet.until(lambda: node.kubelet.total(GPU) == 4)


async def test_own_socket_deleted(node: Machine) -> None:
    """It is there again, and registered again."""
    node.kubelet.start()
    async with node.agent():
        await node.kubelet.until(lambda: node.kubelet.total(GPU) == 4)
        (node.kubelet.directory / "nvidia-gpu.sock").unlink()
        await node.kubelet.until(lambda: len(node.kubelet.registrations) == 2 and len(node.kubelet.lists[GPU]) == 2)


async def test_two_agents_overlap(node: Machine) -> None:
    """The new one takes over, the old one leaves nothing broken behind."""
    node.kubelet.start()
    second = SimulatedNvml.from_mapping(T4S, seed="node")
    async with node.agent() as stop_old:
        await node.kubelet.until(lambda: node.kubelet.total(GPU) == 4)
        async with node.agent(nvml=second):
            await node.kubelet.until(lambda: len(node.kubelet.registrations) == 2 and len(node.kubelet.lists[GPU]) == 2)
            stop_old.set()
            await node.kubelet.until(lambda: node.kubelet.ended == [GPU])
            client = node.kubelet.clients[GPU]
            assert await asyncio.to_thread(client.allocate, [[node.uuids()[0]]])


async def test_driver_comes_late(node: Machine) -> None:
    """No driver is a state: the node shows 0, and its GPUs once the driver answers."""
    node.kubelet.start()
    node.nvml.fail("the driver is not loaded")
    async with node.agent():
        await node.kubelet.until(lambda: node.kubelet.total(GPU) == 0)
        node.nvml.fail("")
        await node.kubelet.until(lambda: node.kubelet.total(GPU) == 4)


async def test_sick_gpu_takes_all_its_shares(node: Machine) -> None:
    """An XID marks every share of the GPU and no other; one of an application marks none."""
    node.kubelet.start()
    node.configure(time_slicing(4))
    uuids = node.uuids()
    async with node.with_config():
        await node.kubelet.until(lambda: node.kubelet.total(GPU) == 16)
        node.nvml.inject(Event(uuid=uuids[0], xid=13))
        node.nvml.inject(Event(uuid=uuids[1], xid=79))
        await node.kubelet.until(lambda: len(node.kubelet.ids(GPU)) == 12)

        assert devices_of(node.kubelet.ids(GPU)) == {uuids[0], uuids[2], uuids[3]}
        assert node.kubelet.total(GPU) == 16


async def test_lost_gpu_comes_back(node: Machine) -> None:
    """A GPU that cannot be read is sick while that lasts; the others are not concerned."""
    node.kubelet.start()
    async with node.agent():
        await node.kubelet.until(lambda: len(node.kubelet.ids(GPU)) == 4)
        node.nvml.lose(2)
        await node.kubelet.until(lambda: len(node.kubelet.ids(GPU)) == 3 and node.kubelet.total(GPU) == 4)
        node.nvml.restore(2)
        await node.kubelet.until(lambda: len(node.kubelet.ids(GPU)) == 4)


async def test_driver_fails_while_serving(node: Machine) -> None:
    """All are sick then, and well again with the driver."""
    node.kubelet.start()
    async with node.agent():
        await node.kubelet.until(lambda: len(node.kubelet.ids(GPU)) == 4)
        node.nvml.fail("gone")
        await node.kubelet.until(lambda: node.kubelet.ids(GPU) == [] and node.kubelet.total(GPU) == 4)
        node.nvml.fail("")
        await node.kubelet.until(lambda: len(node.kubelet.ids(GPU)) == 4)


async def test_mig_layout_changes() -> None:
    """A changed layout is noticed without a restart."""
    with machine({"gpus": [{"model": "A100-SXM4-40GB", "mig": ["1g.5gb", "2g.10gb"]}]}) as split:
        split.kubelet.start()
        async with split.agent("--mig-strategy", "mixed"):
            await split.kubelet.until(lambda: split.kubelet.total("nvidia.com/mig-2g.10gb") == 1)
            split.nvml.split(0, ["1g.5gb", "1g.5gb"])
            await split.kubelet.until(
                lambda: (
                    split.kubelet.total("nvidia.com/mig-1g.5gb") == 2
                    and split.kubelet.total("nvidia.com/mig-2g.10gb") == 0
                )
            )

            await split.kubelet.until(lambda: split.kubelet.total(GPU) == 0)


async def test_shrinking_waits_for_pods(node: Machine, caplog: pytest.LogCaptureFixture) -> None:
    """With `onShrink: refuse`, more in use than would be left keeps the old configuration until pods go."""
    node.kubelet.start()
    node.configure(time_slicing(4))
    async with node.with_config():
        await node.kubelet.until(lambda: node.kubelet.total(GPU) == 16)
        node.holders.append(
            ContainerDevices(namespace="n", pod="p", container="c", resource=GPU, ids=tuple(node.kubelet.ids(GPU)[:9]))
        )
        node.configure(time_slicing(2) + "gpushare: {onShrink: refuse}\n")
        await until_logged(caplog, "configuration refused")
        assert node.kubelet.total(GPU) == 16
        node.holders.clear()
        await asyncio.to_thread(node.kubelet.clients[GPU].allocate, [[node.kubelet.ids(GPU)[0]]])
        await node.kubelet.until(lambda: node.kubelet.total(GPU) == 8)


async def test_health_and_metrics(node: Machine) -> None:
    """On one port, once there is something to tell; a port that is taken is no reason to end."""
    node.kubelet.start()
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    async with node.agent("--metrics-port", str(port)):
        await node.kubelet.until(lambda: node.kubelet.total(GPU) == 4)
        assert await fetched(f"http://127.0.0.1:{port}/readyz") == "ok\n"
        assert 'gpushare_shares{health="healthy",resource="nvidia.com/gpu"' in await fetched(
            f"http://127.0.0.1:{port}/metrics"
        )


async def test_port_is_taken(node: Machine, caplog: pytest.LogCaptureFixture) -> None:
    """Served all the same."""
    node.kubelet.start()
    with socket.socket() as taken:
        taken.bind(("", 0))
        taken.listen()
        async with node.agent("--metrics-port", str(taken.getsockname()[1])):
            await until_logged(caplog, "cannot listen")
            await node.kubelet.until(lambda: node.kubelet.total(GPU) == 4)


async def fetched(url: str) -> str:
    """What is there, once somebody listens."""

    def fetch() -> str:
        with urllib.request.urlopen(url, timeout=30) as answer:
            return str(answer.read().decode())

    async with asyncio.timeout(60):
        while True:
            try:
                return await asyncio.to_thread(fetch)
            except urllib.error.URLError:
                await asyncio.sleep(0.02)
