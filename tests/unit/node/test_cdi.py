"""CDI names on a simulated node."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from gpushare.nvml.simulated import SimulatedNvml
from gpushare.sandbox.node import disks
from gpushare.sandbox.node.cdi import DevicesUnknown, Edits, names_of, resolve
from gpushare.sharing.responses import ContainerAnswer


def node(path: str) -> dict[str, Any]:
    return {"deviceNodes": [{"path": path}]}


def write(root: Path, folder: str, kind: str, **devices: Any) -> None:
    place = root / folder
    place.mkdir(parents=True, exist_ok=True)
    common = {
        "mounts": [{"containerPath": "/usr/bin/nvidia-smi"}],
        "hooks": [{"args": ["a"]}],
        **node("/dev/nvidiactl"),
    }
    listed = [{"name": name, "containerEdits": edits} for name, edits in devices.items()]
    document = {"kind": kind, "devices": listed, "containerEdits": common}
    (place / f"{kind.replace('/', '-')}.json").write_text(json.dumps(document))


def test_names() -> None:
    """From annotations and from the field, each once; annotations of others are none of ours."""
    answer = ContainerAnswer(
        annotations={"cdi.k8s.io/a": "x/gpu=0,x/gpu=1", "example.com/b": "x/gpu=9"}, cdi_devices=("x/gpu=1", "x/gpu=2")
    )

    assert names_of(answer) == ("x/gpu=0", "x/gpu=1", "x/gpu=2")


def test_resolve(tmp_path: Path) -> None:
    """What each device has, and what all of its file have, once."""
    write(tmp_path, "var/run/cdi", "x/gpu", **{"0": node("/dev/nvidia0"), "1": node("/dev/nvidia1")})
    write(tmp_path, "etc/cdi", "x/gds", all=node("/dev/nvidia-fs0"))

    assert resolve(tmp_path, ["x/gpu=1", "x/gpu=0", "x/gds=all"]) == Edits(
        devices=("/dev/nvidiactl", "/dev/nvidia1", "/dev/nvidia0", "/dev/nvidia-fs0"),
        mounts=("/usr/bin/nvidia-smi",),
        hooks=1,
    )
    assert resolve(tmp_path, []) == Edits()


def test_later_folder_wins(tmp_path: Path) -> None:
    """What an administrator left in /etc/cdi gives way to what is written at run time."""
    for folder, path in (("etc/cdi", "/dev/old"), ("var/run/cdi", "/dev/new")):
        write(tmp_path, folder, "x/gpu", **{"0": node(path)})

    assert resolve(tmp_path, ["x/gpu=0"]).devices == ("/dev/nvidiactl", "/dev/new")


def test_unknown(tmp_path: Path) -> None:
    """In the words of containerd."""
    write(tmp_path, "var/run/cdi", "x/gpu", **{"0": node("/dev/nvidia0")})

    with pytest.raises(DevicesUnknown, match=r"^failed to create .* unresolvable CDI devices x/gpu=7, y/gpu=0$"):
        resolve(tmp_path, ["x/gpu=0", "x/gpu=7", "y/gpu=0"])


def test_installed_driver(tmp_path: Path) -> None:
    """The nodes of whole GPUs and of instances, and the libraries of the version; again after GPUs were divided."""
    nvml = SimulatedNvml.from_mapping({"driver": {"version": "550.1"}, "gpus": [{"model": "A100-SXM4-40GB"}]})
    disks.install_driver(tmp_path, nvml)
    nvml.split(0, ["1g.5gb"])
    disks.install_driver(tmp_path, nvml)

    assert {"nvidia0", "nvidiactl"} <= {path.name for path in (tmp_path / "dev").iterdir()}
    assert len(list((tmp_path / "dev/nvidia-caps").iterdir())) == 2
    assert (tmp_path / "usr/lib/x86_64-linux-gnu/libcuda.so.550.1").exists()


def test_no_driver(tmp_path: Path) -> None:
    """A machine without one has none of it."""
    disks.install_driver(tmp_path, SimulatedNvml.from_mapping({}))

    assert list(tmp_path.iterdir()) == []
