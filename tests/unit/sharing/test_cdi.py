"""What CDI specifications say."""

from __future__ import annotations

import json
from typing import Any

import hypothesis.strategies as st
import pytest
from hypothesis import given

from gpushare.api.sharing import IdStrategy
from gpushare.domain.devices import Inventory, MigStrategy
from gpushare.sharing.cdi import (
    CdiOptions,
    DriverFiles,
    Extra,
    Library,
    Node,
    Specifications,
    build_specifications,
)
from support.inventories import gpu, inventories, node, split_gpu, t4s

FOLDER = "/usr/lib64"
CUDA = Library(path=f"{FOLDER}/libcuda.so.550", soname="libcuda.so.1")
NVML = Library(path=f"{FOLDER}/libnvidia-ml.so.550", soname="libnvidia-ml.so.1")
PLAIN = Library(path=f"{FOLDER}/libplain.so.550", soname="libplain.so.550")
CONTROL = Node(path="/dev/nvidiactl", major=195, minor=255, mode=0o666)


def paths_of(inventory: Inventory) -> set[str]:
    return {path for one in inventory.gpus for device in (one, *one.mig) for path in device.paths}


def driver(inventory: Inventory, **fields: Any) -> DriverFiles:
    nodes = {path: Node(path=path, major=195, minor=7, mode=0o444) for path in paths_of(inventory)}
    return DriverFiles(**{"version": "550", "libraries": (CUDA, NVML, PLAIN), "nodes": nodes} | fields)


def build(inventory: Inventory, strategy: MigStrategy = MigStrategy.NONE, **fields: Any) -> Specifications:
    return build_specifications(inventory, strategy, driver(inventory, **fields), CdiOptions())


def names(specifications: Specifications, kind: str = "gpu") -> list[str]:
    return [device["name"] for device in specifications.documents[kind]["devices"]]


def hooks(options: CdiOptions) -> list[list[str]]:
    inventory = t4s(1)
    found = build_specifications(inventory, MigStrategy.NONE, driver(inventory), options)
    return [hook["args"] for hook in found.documents["gpu"]["containerEdits"]["hooks"]]


def test_whole_document() -> None:
    """One GPU, one library, one program; a number that is 0 is left out."""
    found = build(
        t4s(1),
        root="/run/nvidia/driver/",
        dev_root="/run/nvidia/driver",
        libraries=(NVML,),
        programs=("/usr/bin/nvidia-smi",),
        control_nodes=(CONTROL,),
        nodes={"/dev/nvidia0": Node(path="/dev/nvidia0", major=195, minor=0, mode=0o666)},
    )

    options = ["ro", "nosuid", "nodev", "rbind", "rprivate"]
    document = dict(found.documents["gpu"])
    edits = dict(document.pop("containerEdits"))
    assert len(edits.pop("hooks")) == 5
    assert document == {
        "cdiVersion": "0.5.0",
        "kind": "k8s.device-plugin.nvidia.com/gpu",
        "devices": [
            {
                "name": gpu(0).uuid,
                "containerEdits": {
                    "deviceNodes": [
                        {
                            "path": "/dev/nvidia0",
                            "hostPath": "/run/nvidia/driver/dev/nvidia0",
                            "major": 195,
                            "fileMode": 0o666,
                            "permissions": "rwm",
                        }
                    ]
                },
            }
        ],
    }
    assert edits == {
        "env": ["NVIDIA_VISIBLE_DEVICES=void"],
        "deviceNodes": [
            {
                "path": "/dev/nvidiactl",
                "hostPath": "/run/nvidia/driver/dev/nvidiactl",
                "major": 195,
                "minor": 255,
                "fileMode": 0o666,
                "permissions": "rwm",
            }
        ],
        "mounts": [
            {"hostPath": f"/run/nvidia/driver{path}", "containerPath": path, "options": options}
            for path in (NVML.path, "/usr/bin/nvidia-smi")
        ],
    }
    assert found.missing == {}


@pytest.mark.parametrize(
    ("strategy", "id_strategy", "expected"),
    [
        pytest.param(MigStrategy.MIXED, IdStrategy.UUID, [split_gpu(0, "1g.5gb", "2g.10gb").mig[0].uuid,
                     split_gpu(0, "1g.5gb", "2g.10gb").mig[1].uuid, gpu(1).uuid], id="instances in place of their GPU"),
        pytest.param(MigStrategy.MIXED, IdStrategy.INDEX, ["0:0", "0:1", "1"], id="by index"),
        pytest.param(MigStrategy.NONE, IdStrategy.INDEX, ["0", "0:0", "0:1", "1"], id="given out whole, so described whole"),
    ],
)  # fmt: skip
def test_names(strategy: MigStrategy, id_strategy: IdStrategy, expected: list[str]) -> None:
    """Each device under the name that answers give."""
    inventory = node(split_gpu(0, "1g.5gb", "2g.10gb"), gpu(1))

    found = build_specifications(inventory, strategy, driver(inventory), CdiOptions(id_strategy=id_strategy))

    assert names(found) == expected


@pytest.mark.parametrize(
    ("options", "beginning"),
    [
        pytest.param(CdiOptions(), ["nvidia-ctk", "hook"], id="default"),
        pytest.param(CdiOptions(hook_path="/opt/nvidia-cdi-hook"), ["nvidia-cdi-hook"], id="a program of hooks only"),
    ],
)
def test_hooks(options: CdiOptions, beginning: list[str]) -> None:
    """Links before the cache that finds them; libcuda.so also under the name without a version."""
    assert hooks(options) == [
        [*beginning, "create-symlinks",
         "--link", f"libcuda.so.550::{FOLDER}/libcuda.so.1", "--link", f"libcuda.so.1::{FOLDER}/libcuda.so",
         "--link", f"libnvidia-ml.so.550::{FOLDER}/libnvidia-ml.so.1"],
        [*beginning, "enable-cuda-compat", "--host-driver-version=550"],
        [*beginning, "update-ldcache", "--folder", FOLDER],
        [*beginning, "disable-device-node-modification"],
        [*beginning, "update-application-profile"],
    ]  # fmt: skip


def test_disabled_hooks() -> None:
    """Some, or all."""
    some = hooks(CdiOptions(disabled_hooks=frozenset({"enable-cuda-compat", "update-application-profile"})))

    assert [args[2] for args in some] == ["create-symlinks", "update-ldcache", "disable-device-node-modification"]
    assert hooks(CdiOptions(disabled_hooks=frozenset({"all"}))) == []


def test_missing_node() -> None:
    """A device that could not be opened is not described, and named."""
    found = build(t4s(2), nodes={"/dev/nvidia1": Node(path="/dev/nvidia1")})

    assert names(found) == [gpu(1).uuid]
    assert found.missing == {gpu(0).uuid: "/dev/nvidia0"}
    (described,) = found.documents["gpu"]["devices"]
    assert described["containerEdits"]["deviceNodes"] == [
        {"path": "/dev/nvidia1", "hostPath": "/dev/nvidia1", "permissions": "rwm"}
    ]


def test_other_classes() -> None:
    """Channels by number; the extras as one device, if there is anything."""
    found = build(
        t4s(1),
        channels={0: Node(path="/dev/nvidia-caps-imex-channels/channel0")},
        extras={
            "gdrcopy": Extra(),
            "gds": Extra(nodes=(Node(path="/dev/nvidia-fs0"),), paths=("/run/udev",)),
            "mofed": Extra(paths=("/etc/nothing",)),
        },
    )

    assert list(found.documents) == ["gpu", "imex-channel", "gds"]
    assert names(found, "imex-channel") == ["0"]
    assert names(found, "gds") == ["all"]
    (everything,) = found.documents["gds"]["devices"]
    assert [one["path"] for one in everything["containerEdits"]["deviceNodes"]] == ["/dev/nvidia-fs0"]
    assert [mount["containerPath"] for mount in everything["containerEdits"]["mounts"]] == ["/run/udev"]


def test_no_gpu() -> None:
    """Nothing to describe, no document."""
    assert build(node()).documents == {}


@given(inventories(), st.sampled_from(MigStrategy))
def test_each_device_once(inventory: Inventory, strategy: MigStrategy) -> None:
    """No name and no node twice, everything JSON, the same from the same."""
    found = build(inventory, strategy)

    text = json.dumps(dict(found.documents))
    assert text == json.dumps(dict(build(inventory, strategy).documents))
    for document in found.documents.values():
        listed = [device["name"] for device in document["devices"]]
        assert len(listed) == len(set(listed))
        for device in document["devices"]:
            nodes = [one["path"] for one in device["containerEdits"]["deviceNodes"]]
            assert len(nodes) == len(set(nodes))
