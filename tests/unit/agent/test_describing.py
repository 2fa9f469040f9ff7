"""What is described by CDI, and what is not offered because it could not be."""

from __future__ import annotations

import json
import logging
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from gpushare.agent.deciding import Assignment, Decider, Decision
from gpushare.agent.describing import Describer
from gpushare.agent.options import AgentOptions, parse
from gpushare.domain.devices import Inventory
from gpushare.host.files import HostFiles
from support.driver_roots import install_driver, make_nodes
from support.inventories import gpu, split_gpu, t4s

GPU = "nvidia.com/gpu"
CDI = ("--device-list-strategy=cdi-cri",)
FOLDER = "var/run/cdi"
NO_HOOK = "/usr/bin/nvidia-ctk: is not on this host, and containers with a GPU need it to start"
MINE = f"{FOLDER}/k8s.device-plugin.nvidia.com-gpu.json"
NODES = {"/dev/nvidia0": (195, 0), "/dev/nvidia1": (195, 1), "/dev/nvidiactl": (195, 255)}


class Host:
    """A host with a driver and two GPUs, and the agent's decisions about it."""

    def __init__(self, root: Path, *argv: str) -> None:
        self.root = root
        self.files = HostFiles(root)
        self.configure(*CDI, *argv)
        install_driver(root / "driver-root")
        make_nodes(root, NODES)

    def configure(self, *argv: str) -> None:
        self.options: AgentOptions = parse(argv, {})
        self.describer = Describer(self.options, self.files, logging.getLogger("agent"))

    def decide(self, text: str = "", inventory: Inventory | None = None) -> Decision:
        """What the agent would offer, before it describes it."""
        decider = Decider(self.options, self.files)
        return decider.decide(Assignment(content=text), None, inventory or t4s(2), ())

    def describe(self, text: str = "", inventory: Inventory | None = None) -> Decision:
        inventory = inventory or t4s(2)
        return self.describer.describe(self.decide(text, inventory), inventory)

    def documents(self) -> dict[str, Any]:
        paths = sorted((self.root / FOLDER).glob("*.json"))
        return {path.name.removeprefix("k8s.device-plugin.nvidia.com-"): json.loads(path.read_text()) for path in paths}

    def names(self, file: str = "gpu.json") -> list[str]:
        return [device["name"] for device in self.documents()[file]["devices"]]


@pytest.fixture
def host(tmp_path: Path) -> Host:
    return Host(tmp_path)


def healthy(decision: Decision) -> list[bool]:
    return [share.healthy for share in decision.pools[GPU].shares]


def notes(decision: Decision) -> list[str]:
    return list(map(str, decision.notes))


def test_nothing_to_describe(host: Host) -> None:
    """Without CDI the decision stays what it is, and no file appears."""
    host.configure()
    decision = host.decide()

    assert host.describer.describe(decision, t4s(2)) is decision
    assert host.documents() == {}
    assert host.describer.is_settled()
    assert not host.describer.has_leftovers()


def test_all_is_well(host: Host) -> None:
    """What is offered is described; the decision stays what it is; a second time changes nothing."""
    decision = host.decide()
    assert host.describer.describe(decision, t4s(2)) == decision
    written = (host.root / MINE).stat().st_ino

    assert host.names() == [gpu(0).uuid, gpu(1).uuid]
    assert host.describer.is_settled()
    assert host.describer.describe(decision, t4s(2)) == decision
    assert (host.root / MINE).stat().st_ino == written


def test_driver_is_silent(host: Host) -> None:
    """While the GPUs are not known, what was described stays."""
    host.describe()
    before = host.documents()
    decision = host.decide()

    assert host.describer.describe(decision, None) is decision
    assert host.documents() == before
    assert host.describer.is_settled()


def test_devices_change(host: Host) -> None:
    """A GPU that is divided is described by its instances."""
    host.describe("flags: {migStrategy: mixed}")
    host.describe(
        "flags: {migStrategy: mixed}", Inventory(gpus=(split_gpu(0, "1g.5gb"), gpu(1)), driver_version="550.90.07")
    )

    assert host.names() == [split_gpu(0, "1g.5gb").mig[0].uuid, gpu(1).uuid]


def test_missing_device_node(host: Host) -> None:
    """Only its own device is kept back, with the reason; all is well once it is there."""
    (host.root / "dev/nvidia1").unlink()
    decision = host.describe()

    assert healthy(decision) == [True, False]
    assert notes(decision) == [
        f"/dev/nvidia1: is not on this host, so {gpu(1).uuid} cannot be described by CDI and is not offered"
    ]
    assert host.names() == [gpu(0).uuid]
    assert not host.describer.is_settled()

    (host.root / "dev/nvidia1").touch()
    assert healthy(host.describe()) == [True, True]
    assert host.describer.is_settled()


def test_no_library(host: Host) -> None:
    """A driver that is not where it is said to be: nothing is offered, what stands there stays."""
    host.describe()
    before = host.documents()
    (host.root / "driver-root").rename(host.root / "away")
    decision = host.describe()

    assert healthy(decision) == [False, False]
    (note,) = notes(decision)
    assert note.startswith("/: libcuda.so.550.90.07 is not there (here: /driver-root), so no device can be described")
    assert host.documents() == before
    assert not host.describer.is_settled()


def test_folder_that_cannot_be_written(host: Host) -> None:
    """Nothing is offered that no runtime could find, and the place is named; all is well once it can be."""
    (host.root / "var/run").mkdir(parents=True)
    (host.root / FOLDER).touch()
    decision = host.describe()

    assert healthy(decision) == [False, False]
    assert notes(decision)[0] == f"/{MINE}: cannot be written: File exists"
    assert not host.describer.is_settled()

    (host.root / FOLDER).unlink()
    assert healthy(host.describe()) == [True, True]


def test_shares_by_index(tmp_path: Path) -> None:
    """Names are indices then, and each share of a device that is not described is kept back."""
    host = Host(tmp_path, "--device-id-strategy=index")
    (tmp_path / "dev/nvidia0").unlink()
    text = "sharing: {timeSlicing: {resources: [{name: nvidia.com/gpu, replicas: 2}]}}"

    assert healthy(host.describe(text)) == [False, False, True, True]
    assert host.names() == ["1"]


@pytest.mark.parametrize(
    ("there", "channels", "features"),
    [
        pytest.param([], (), (), id="nothing"),
        pytest.param(["nvidia-caps-imex-channels/channel0"], (0,), (), id="channel"),
        pytest.param(["nvidia-fs0", "gdrdrv"], (), ("gdrcopy", "gds"), id="features"),
    ],
)
def test_extras(tmp_path: Path, there: Sequence[str], channels: tuple[int, ...], features: tuple[str, ...]) -> None:
    """Answers name what is described, and nothing else."""
    host = Host(tmp_path, "--gds-enabled", "--gdrcopy-enabled", "--mofed-enabled", "--imex-channel-ids=0")
    make_nodes(tmp_path / "dev", dict.fromkeys(there, (1, 3)))
    responses = host.describe().responses

    assert responses.imex_channels == channels
    assert responses.cdi_features == set(features)
    assert responses.features == {"gds", "gdrcopy", "mofed"}
    extras = [f"{name}.json" for name in (*features, *(["imex-channel"] if channels else []))]
    assert sorted(host.documents()) == sorted(["gpu.json", *extras])


def test_leftovers(host: Host) -> None:
    """Files of a strategy that is over go when they are told to, those of others never."""
    host.describe()
    (host.root / FOLDER / "nvidia.yaml").touch()
    host.configure()
    host.describe()
    assert host.describer.is_settled()
    assert host.describer.has_leftovers()

    host.describer.clear()
    assert [path.name for path in (host.root / FOLDER).iterdir()] == ["nvidia.yaml"]
    assert not host.describer.has_leftovers()


def test_files_in_use_are_not_cleared(host: Host) -> None:
    """However often somebody asks."""
    host.describe()
    host.describer.clear()

    assert host.documents()


def test_file_that_was_removed(host: Host) -> None:
    """Somebody has tidied up: it is noticed."""
    host.describe()
    (host.root / MINE).unlink()

    assert not host.describer.is_settled()


@pytest.mark.parametrize(
    ("argv", "sees_host", "expected"),
    [
        pytest.param([], False, [], id="cannot know"),
        pytest.param([], True, [NO_HOOK], id="missing"),
        pytest.param(["--nvidia-cdi-hook-path=/dev"], True, [], id="there"),
        pytest.param(["--cdi-feature-flags=x"], False, ['--cdi-feature-flags: "x" is not known'], id="feature flag"),
    ],
)  # fmt: skip
def test_remarks(tmp_path: Path, argv: list[str], sees_host: bool, expected: list[str]) -> None:
    """What is odd and hinders nothing."""
    host = Host(tmp_path, *argv)
    if sees_host:
        (tmp_path / "host").symlink_to(tmp_path)
    decision = host.describe()

    assert healthy(decision) == [True, True]
    assert len(decision.notes) == len(expected)
    assert all(note.startswith(text) for note, text in zip(notes(decision), expected, strict=True))
    assert host.describer.is_settled()
