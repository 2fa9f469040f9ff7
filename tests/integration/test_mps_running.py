"""The MPS process over its life: starts, changes, bad configurations, drivers that go, an agent that decides."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from support.mps_nodes import CONFIG_FILE, GPU, MpsNode, mps, until
from support.mps_programs import daemon_pid, kill_daemon

TIME_SLICING = "sharing: {timeSlicing: {resources: [{name: nvidia.com/gpu, replicas: 4}]}}\n"


@pytest.fixture
async def node(tmp_path: Path) -> AsyncIterator[MpsNode]:
    made = MpsNode(tmp_path)
    yield made
    kill_daemon(tmp_path, GPU)


async def test_life(node: MpsNode) -> None:
    """Begins, says that it is ready, ends, and gives the GPUs back."""
    async with node.with_config(mps(4)) as service:
        assert service.why_not_ready()
        await until(lambda: not service.why_not_ready())
        assert node.runs()
        assert service.figures() == {GPU: True}

    assert daemon_pid(node.root, GPU) is None
    assert sorted(node.programs.smi_commands) == sorted(
        f"-i {uuid} -c {mode}" for uuid in node.uuids for mode in ("EXCLUSIVE_PROCESS", "DEFAULT")
    )


@pytest.mark.parametrize(
    ("text", "percentage"),
    [pytest.param(mps(8), 12, id="other limits"), pytest.param(mps(2, "renameByDefault: false,"), 50, id="and words")],
)
async def test_reload(node: MpsNode, text: str, percentage: int) -> None:
    """Another number of replicas is another daemon, in the same process."""
    async with node.with_config(mps(4)):
        await until(node.runs)

        node.configure(text)

        await until(lambda: node.runs(percentage))


async def test_reload_of_nothing(node: MpsNode) -> None:
    """A text that means the same for MPS leaves the daemon and its clients alone."""
    async with node.with_config(mps(4)):
        await until(node.runs)
        pid = daemon_pid(node.root, GPU)

        node.configure(mps(4) + "flags: {failOnInitError: false}\n")
        await asyncio.sleep(1.2)  # the file is read once a second

        assert daemon_pid(node.root, GPU) == pid
        assert node.programs.told.count("quit") == 0


async def test_leaves_mps(node: MpsNode) -> None:
    """Time slicing needs no daemon, and GPUs that everybody may use."""
    async with node.with_config(mps(4)) as service:
        await until(node.runs)

        node.configure(TIME_SLICING)

        await until(lambda: daemon_pid(node.root, GPU) is None)
        await until(lambda: service.figures() == {} and not service.why_not_ready())
    assert node.programs.smi_commands[-1].endswith("-c DEFAULT")


@pytest.mark.parametrize(
    "bad",
    [
        pytest.param("sharing: {mps: {resources: [{name: nvidia.com/gpu, replica: 4}]}}", id="unknown key"),
        pytest.param("{", id="no YAML"),
        pytest.param(mps(49), id="more clients than the GPU takes"),
    ],
)
async def test_bad_configuration(node: MpsNode, bad: str, caplog: pytest.LogCaptureFixture) -> None:
    """Whatever cannot be used changes nothing, and the process goes on."""
    async with node.with_config(mps(4)) as service:
        await until(node.runs)

        node.configure(bad)

        await until(lambda: "configuration refused: the daemons stay as they are" in caplog.messages)
        assert node.runs()
        assert service.why_not_ready() == ""
        assert "quit" not in node.programs.told


async def test_unreadable_at_the_start(node: MpsNode) -> None:
    """After a sudden end it goes on with what its predecessor began, until there is a file that can be read."""
    async with node.with_config(mps(4)):
        await until(node.runs)
        begun = node.memory.read_text()
    node.memory.write_text(begun)
    (node.root / "config.yaml").unlink()

    async with node.running(*CONFIG_FILE) as service:
        await until(lambda: node.runs() and not service.why_not_ready())

        node.configure(TIME_SLICING)

        await until(lambda: daemon_pid(node.root, GPU) is None)


async def test_daemon_dies(node: MpsNode) -> None:
    """It is begun anew."""
    async with node.with_config(mps(4)):
        await until(node.runs)
        pid = daemon_pid(node.root, GPU)

        kill_daemon(node.root, GPU)

        await until(lambda: node.runs() and daemon_pid(node.root, GPU) != pid)


async def test_relays_the_log(node: MpsNode, caplog: pytest.LogCaptureFixture) -> None:
    """What the daemon writes stands in our log."""
    caplog.set_level(logging.INFO)
    async with node.with_config(mps(4)):
        await until(node.runs)

        (node.root / "mps" / GPU / "log/control.log").write_text("[Control] Starting new server\n")

        await until(lambda: "MPS daemon says" in caplog.messages)
    (record,) = (record for record in caplog.records if record.message == "MPS daemon says")
    assert (record.__dict__["resource"], record.__dict__["line"]) == (GPU, "[Control] Starting new server")


async def test_program_comes_late(node: MpsNode) -> None:
    """A driver that is being installed: the reason is told, and then all is well."""
    hidden = node.root / "hidden"
    program = node.programs.folder / "nvidia-cuda-mps-control"
    program.rename(hidden)
    async with node.with_config(mps(4)) as service:
        await until(lambda: "nvidia-cuda-mps-control is neither on PATH nor below" in service.why_not_ready())

        hidden.rename(program)

        await until(lambda: node.runs() and not service.why_not_ready())


async def test_driver_does_not_answer(node: MpsNode) -> None:
    """Nothing is begun before the GPUs are known; the process is not ready, and not gone."""
    node.nvml.fail("no driver")
    async with node.with_config(mps(4)) as service:
        await until(lambda: service.why_not_ready() == "driver: no driver")
        assert node.programs.smi_commands == []

        node.nvml.fail("")

        await until(node.runs)


async def test_without_any_configuration(node: MpsNode) -> None:
    """Nothing is shared: it idles, and is ready, as NVIDIA's daemon is."""
    async with node.running() as service:
        await until(lambda: not service.why_not_ready())
        assert (node.root / "mps/.ready").exists()
    assert node.programs.smi_commands == []
