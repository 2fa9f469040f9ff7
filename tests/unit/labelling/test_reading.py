"""One reading of a node, and the next one."""

from __future__ import annotations

from pathlib import Path

import pytest

from gpushare.host.files import HostFiles
from gpushare.labelling.options import parse
from gpushare.labelling.reading import Reader, Reading
from gpushare.nvml.port import Driver
from gpushare.nvml.simulated import SimulatedNvml
from support.described_nodes import build_machine, build_nvml

T4S = "driver 550.90.07\ncuda 12040\ngpu T4 bus=0000:3b:00.0\ngpu T4 bus=0000:5e:00.0\n"
SPLIT = "gpu A100-40GB bus=0000:07:00.0 mig=on\nmig 0 1g.5gb 2\n"
SHARED = "sharing: {timeSlicing: {resources: [{name: nvidia.com/gpu, replicas: 4}]}}"
BOTH = "sharing: {timeSlicing: {resources: [{name: gpu, replicas: 4}]}, mps: {resources: [{name: gpu, replicas: 2}]}}"
MPS = "sharing: {mps: {resources: [{name: nvidia.com/gpu, replicas: %d}]}}"
REPLICAS, COUNT, PRODUCT = "nvidia.com/gpu.replicas", "nvidia.com/gpu.count", "nvidia.com/gpu.product"


class Node:
    """A described node, its configuration file, and a reader of it."""

    def __init__(self, root: Path, text: str, *argv: str) -> None:
        build_machine(text).write(root)
        self.nvml: SimulatedNvml = build_nvml(text)
        self._config = root / "config.yaml"
        self._reader = Reader(parse(["--config-file=/config.yaml", *argv], {}), HostFiles(root), self.nvml)

    def read(self, config: str | None = None) -> Reading:
        if config is not None:
            self._config.write_text(config)
        return self._reader.read(1_700_000_000)


def value(reading: Reading, key: str) -> str | None:
    assert reading.labels is not None
    return reading.labels.get(key)


def test_labels(tmp_path: Path) -> None:
    """What the node has, as it is configured; with the time that is given."""
    reading = Node(tmp_path, T4S).read(SHARED)

    assert (reading.failures, reading.notes) == ((), ())
    assert value(reading, REPLICAS) == "4"
    assert value(reading, "nvidia.com/gfd.timestamp") == "1700000000"
    assert value(Node(tmp_path, T4S, "--no-timestamp").read(SHARED), "nvidia.com/gfd.timestamp") is None


@pytest.mark.parametrize(
    ("config", "failure"),
    [
        pytest.param("version: v2\n", "version (line 1)", id="version"),
        pytest.param(MPS % -1, "replicas", id="replicas"),
        pytest.param("sharing: {timeSlicing: }\n", "sharing.timeSlicing", id="empty block"),
        pytest.param(": : :", "cannot be read as YAML", id="no YAML"),
    ],
)
def test_a_configuration_that_nobody_takes(tmp_path: Path, config: str, failure: str) -> None:
    """It is a failure, and the labels are those of devices that are not shared; later, of what was shared before."""
    node = Node(tmp_path, T4S)

    reading = node.read(config)

    assert failure in " ".join(reading.failures)
    assert value(reading, REPLICAS) == "1"
    node.read(SHARED)
    assert value(node.read(config), REPLICAS) == "4"


@pytest.mark.parametrize(
    ("config", "note"),
    [
        pytest.param(SHARED.replace("}]", ", replica: 4}]"), "unknown key", id="unknown key"),
        pytest.param(f"version: v1\nversion: v1\n{SHARED}", "stands here twice", id="key twice"),
        pytest.param(BOTH, "exclude each other", id="both"),
        pytest.param(MPS % 49, "takes 48 MPS clients at most", id="too many clients"),
    ],
)
def test_a_configuration_that_only_we_refuse(tmp_path: Path, config: str, note: str) -> None:
    """NVIDIA's feature discovery does not fail for it; the labels say what the agent serves then."""
    reading = Node(tmp_path, T4S).read(config)

    assert reading.failures == ()
    assert note in " ".join(reading.notes)
    assert value(reading, REPLICAS) == "1"


def test_no_configuration_file(tmp_path: Path) -> None:
    """A file that was named and is not there is a failure."""
    reading = Node(tmp_path, T4S).read()

    assert reading.failures == (f"{tmp_path}/config.yaml: cannot be read: No such file or directory",)


def test_mps_and_mig(tmp_path: Path) -> None:
    """The one layout that GPU feature discovery has no labels for."""
    reading = Node(tmp_path, SPLIT, "--mig-strategy=single").read(MPS % 2)

    assert reading.failures == ("MPS is configured, and MIG is on: MPS does not share MIG devices",)
    assert value(reading, REPLICAS) == "1"


def test_a_driver_version_of_another_form(tmp_path: Path) -> None:
    """It cannot be told in labels, and all else can."""
    reading = Node(tmp_path, T4S.replace("550.90.07", "550.90-beta")).read("")

    assert reading.failures == ('the driver\'s version "550.90-beta" is not of the form 550.90.07',)
    assert value(reading, COUNT) == "2"


def test_a_driver_that_does_not_tell_its_cuda(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As GPU feature discovery fails for it; all else can be told."""
    node = Node(tmp_path, T4S)
    monkeypatch.setattr(node.nvml, "driver", lambda: Driver(version="550.90.07"))

    reading = node.read("")

    assert reading.failures == ("the driver does not tell which version of CUDA it supports",)
    assert value(reading, COUNT) == "2"


def test_no_driver(tmp_path: Path) -> None:
    """Nothing is known, and that is a failure."""
    node = Node(tmp_path, T4S)
    node.nvml.fail("driver not loaded")

    reading = node.read("")

    assert (reading.labels, reading.failures) == (None, ("driver not loaded",))


def test_no_driver_and_no_failure(tmp_path: Path) -> None:
    """The labels of a node without GPUs, until it answers for the first time; from then on what is known."""
    node = Node(tmp_path, T4S, "--fail-on-init-error=false", "--no-timestamp")
    node.nvml.fail("driver not loaded")

    reading = node.read("")

    assert reading.labels == {"nvidia.com/vgpu.present": "false"}
    assert (reading.failures, reading.notes) == ((), ("driver not loaded",))
    node.nvml.fail("")
    assert value(node.read(), COUNT) == "2"
    node.nvml.fail("driver reset")
    assert value(node.read(), COUNT) == "2"


def test_a_lost_gpu(tmp_path: Path) -> None:
    """One that was there still counts, as for the agent; one that was never seen cannot. It is a failure both times."""
    node = Node(tmp_path, T4S)
    node.nvml.lose(1)
    assert value(node.read(""), COUNT) == "1"
    node.nvml.restore(1)
    assert value(node.read(), COUNT) == "2"

    node.nvml.lose(1)
    reading = node.read()

    assert value(reading, COUNT) == "2"
    assert reading.failures == ("GPU 1 is lost",)


def test_a_layout_that_changes(tmp_path: Path) -> None:
    """The next reading sees it; a layout that does not fit the strategy is a note."""
    node = Node(tmp_path, SPLIT, "--mig-strategy=single")
    assert value(node.read(""), PRODUCT) == "NVIDIA-A100-SXM4-40GB-MIG-1g.5gb"
    node.nvml.split(0, [])

    reading = node.read()

    assert value(reading, PRODUCT) == "NVIDIA-A100-SXM4-40GB-MIG-INVALID"
    assert reading.failures == ()
    assert "single needs MIG instances" in " ".join(reading.notes)
