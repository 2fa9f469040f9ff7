"""The status of a GPUNode."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from gpushare.agent import reporting
from gpushare.agent.deciding import Assignment, Decider
from gpushare.agent.facts import Facts
from gpushare.agent.options import AgentOptions
from gpushare.agent.reporting import build_status, truncated
from gpushare.domain.devices import Inventory
from gpushare.domain.gpunode import ContainerAllocation, GPUNodeStatus
from gpushare.errors import Problem
from gpushare.host.files import HostFiles
from gpushare.kubelet.lifecycle import Standing
from gpushare.kubelet.values import ContainerDevices
from support.inventories import XID_79, gpu, node, split_gpu, t4s

GPU = "nvidia.com/gpu"
SHARED = "sharing: {timeSlicing: {resources: [{name: nvidia.com/gpu, replicas: 4}]}}"


def facts(tmp_path: Path, content: str | None = SHARED, *, inventory: Inventory | None = None, **fields: Any) -> Facts:
    assignment = None if content is None else Assignment(content=content, name="any")
    decision = Decider(AgentOptions(), HostFiles(tmp_path)).decide(assignment, None, inventory, ())
    defaults: dict[str, Any] = {
        "generation": 3,
        "failure": "",
        "pools": decision.pools,
        "standings": {name: Standing(registered=True) for name in decision.pools},
    }
    return Facts(decision=decision, inventory=inventory, **(defaults | fields))


def conditions(status: dict[str, Any]) -> dict[str, tuple[str, str, str]]:
    return {one["type"]: (one["status"], one["reason"], one["message"]) for one in status["conditions"]}


def test_all_is_well(tmp_path: Path) -> None:
    """Both sides of the border read the same."""
    holders = [ContainerDevices(namespace="n", pod="p", container="c", resource=GPU, ids=(f"{gpu(1).uuid}::2",))]

    status = build_status(facts(tmp_path, inventory=t4s(2), holders=holders, labels={"a": "b"}))
    read = GPUNodeStatus.from_json(status)

    assert status["summary"] == {"gpus": 2, "shares": 8, "healthy": 8}
    assert conditions(status) == {
        "ConfigApplied": ("True", "Applied", f"in force: any (revision {read.applied_revision})"),
        "DevicesReady": ("True", "Ready", "2 GPUs, driver 550.90.07"),
        "Registered": ("True", "Registered", "the kubelet knows nvidia.com/gpu"),
    }
    assert {one["observedGeneration"] for one in status["conditions"]} == {3}
    assert read.resources[0].allocated == 1
    assert [(one.gpu_index, one.shares) for one in read.allocations] == [(1, (2,))]
    assert (read.labels, read.problems, read.cuda_version) == ({"a": "b"}, (), "12.4")


def test_holders_are_not_known_yet(tmp_path: Path) -> None:
    """What an agent before this one has reported of them stays as it is."""
    reported = (
        ContainerAllocation(
            gpu_index=1, namespace="n", pod="p", container="c", resource=GPU, shares=(2,), pod_uid="u", memory_mib=3
        ),
    )
    status = build_status(facts(tmp_path, inventory=t4s(2), reported=reported))

    assert GPUNodeStatus.from_json(status).allocations == reported


def test_mps(tmp_path: Path) -> None:
    """A condition of its own, which does not say that the configuration is not in force; the reason stands among problems."""
    waiting = {GPU: "its MPS daemon does not run: no such program"}

    status = build_status(facts(tmp_path, inventory=t4s(1), waiting=waiting))
    message = "the shares of nvidia.com/gpu are not offered: its MPS daemon does not run: no such program"
    assert conditions(status)["MpsReady"] == ("False", "WaitingForMps", message)
    assert conditions(status)["ConfigApplied"][0] == "True"
    assert status["problems"] == [{"path": "sharing.mps", "message": message}]

    status = build_status(facts(tmp_path, inventory=t4s(1), waiting={GPU: ""}))
    assert conditions(status)["MpsReady"] == ("True", "Ready", "MPS daemons run for nvidia.com/gpu")
    assert status["problems"] == []


def test_odd_links(tmp_path: Path) -> None:
    """A note for people; the GPUs are as ready as before."""
    odd = Problem(
        path="gpus[0].nvlink", message="4 NVLinks to GPU 1, which counts 3 back; the lesser number is believed"
    )

    status = build_status(facts(tmp_path, inventory=t4s(2), link_problems=(odd,)))

    assert conditions(status)["DevicesReady"] == ("True", "Ready", "2 GPUs, driver 550.90.07")
    assert status["problems"] == [{"path": odd.path, "message": odd.message}]


def test_devices(tmp_path: Path) -> None:
    """What people ask about a GPU, and its instances."""
    status = build_status(facts(tmp_path, "", inventory=node(gpu(0), split_gpu(1, "1g.5gb", numa_node=None))))

    assert status["devices"] == [
        {
            "index": 0,
            "uuid": gpu(0).uuid,
            "product": "Tesla T4",
            "memoryMiB": 15360,
            "computeCapability": "7.5",
            "busId": "",
            "numaNode": 0,
            "health": {"healthy": True},
        },
        {
            "index": 1,
            "uuid": gpu(1).uuid,
            "product": "NVIDIA A100-SXM4-40GB",
            "memoryMiB": 40960,
            "computeCapability": "8.0",
            "busId": "",
            "migEnabled": True,
            "mig": [
                {
                    "index": 0,
                    "uuid": "MIG-00000001-0000-0000-0000-000000000000",
                    "profile": "1g.5gb",
                    "memoryMiB": 4864,
                    "health": {"healthy": True},
                }
            ],
            "health": {"healthy": True},
        },
    ]


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        pytest.param("sharing: 1", ("False", "ConfigRefused", "the devices are unshared"), id="refused"),
        pytest.param(None, ("False", "NoConfig", "nothing is assigned; the devices are unshared"), id="nothing"),
        pytest.param("", ("True", "Applied", "in force: defaults, nothing is shared"), id="defaults"),
    ],
)
def test_config_applied(tmp_path: Path, content: str | None, expected: tuple[str, str, str]) -> None:
    """What is in force, and why it is not what was asked for."""
    status, reason, message = conditions(build_status(facts(tmp_path, content, inventory=t4s(1))))["ConfigApplied"]

    assert (status, reason) == expected[:2]
    assert message.endswith(expected[2])


def test_refused_configuration_and_the_one_kept(tmp_path: Path) -> None:
    """Both by name: the wanted one is what the controller says, the kept one is what people know it by."""
    decider = Decider(AgentOptions(), HostFiles(tmp_path))
    good = decider.decide(Assignment(content=SHARED, name="braces"), None, t4s(1), ())
    kept = decider.decide(Assignment(content="sharing: 1", name="any"), good.in_force, t4s(1), ())

    message = conditions(build_status(replace(facts(tmp_path, inventory=t4s(1)), decision=kept)))["ConfigApplied"][2]

    assert message.endswith(f"; kept: braces (revision {good.revision})")


def test_more_in_use_than_offered(tmp_path: Path) -> None:
    """After a shrink: nothing is wrong, and people wonder all the same."""
    ids = tuple(f"{gpu(0).uuid}::{number}" for number in range(6))
    holders = [ContainerDevices(namespace="n", pod="p", container="c", resource=GPU, ids=ids)]

    status = build_status(facts(tmp_path, inventory=t4s(1), holders=holders))

    note = "6 of nvidia.com/gpu are in use and 4 are offered: running pods stay, new ones wait"
    assert conditions(status)["ConfigApplied"][2].endswith(f"; {note}")
    assert [problem["message"] for problem in status["problems"]] == [note]


def test_devices_not_ready(tmp_path: Path) -> None:
    """The worst first: no driver, no GPU, sick ones, those that cannot be read; none twice."""
    lost = node(gpu(0, health=XID_79))
    instance = split_gpu(0, "1g.5gb").mig[0]
    hurt = node(split_gpu(0, mig=(replace(instance, health=XID_79),)))
    unreadable = Inventory(problems=(Problem(path="gpus[0]", message="is lost"),))

    def shown(**fields: Any) -> tuple[str, str, str]:
        return conditions(build_status(facts(tmp_path, "", **fields)))["DevicesReady"]

    assert shown(inventory=None, failure="no driver") == ("False", "DriverUnavailable", "no driver")
    assert shown(inventory=None) == ("False", "DriverUnavailable", "not asked yet")
    assert shown(inventory=unreadable) == ("False", "DeviceUnreadable", "gpus[0]: is lost")
    assert shown(inventory=replace(lost, problems=unreadable.problems))[2] == "GPU 0: XID 79"
    assert shown(inventory=Inventory(driver_version="550.90.07")) == (
        "False",
        "NoGPUs",
        "the driver 550.90.07 finds no GPU on this node; if it has none, remove its label nvidia.com/gpu.present",
    )
    assert shown(inventory=lost) == ("False", "DeviceUnhealthy", "GPU 0: XID 79")
    assert shown(inventory=hurt) == ("False", "DeviceUnhealthy", "MIG 0:0: XID 79")


def test_not_registered(tmp_path: Path) -> None:
    """Which resource, and why."""
    status = build_status(
        facts(tmp_path, inventory=t4s(1), standings={GPU: Standing(registered=False, message="no kubelet")})
    )

    assert conditions(status)["Registered"] == ("False", "NotRegistered", "nvidia.com/gpu: no kubelet")

    displaced = {GPU: Standing(registered=False, message="another one is there", is_displaced=True)}
    status = build_status(facts(tmp_path, inventory=t4s(1), standings=displaced))
    assert conditions(status)["Registered"] == ("False", "AnotherPlugin", "nvidia.com/gpu: another one is there")


def test_long_messages_are_cut(tmp_path: Path) -> None:
    """A condition is for reading."""
    standings = {f"nvidia.com/r{number}": Standing(registered=False, message="x" * 100) for number in range(50)}

    message = conditions(build_status(facts(tmp_path, standings=standings)))["Registered"][2]

    assert len(message) == 1024
    assert message.endswith("...")


def test_truncated() -> None:
    """The ends of long lists go, those of allocations first; how many is written down."""
    containers = [{"namespace": "n", "pod": f"pod-{number:04}", "container": "c"} for number in range(100)]
    status = {
        "devices": [{"index": number} for number in range(10)],
        "problems": [{"message": "x" * 50}] * 10,
        "allocations": [{"index": 0, "containers": containers}, {"index": 1, "containers": containers}],
    }

    def size(value: object) -> int:
        return len(json.dumps(value, separators=(",", ":")))

    untouched = truncated(status, 20_000)
    shorter = truncated(status, 8_000)
    tiny = truncated(status, 500)

    assert untouched == status
    assert size(shorter) <= 8_000
    kept = sum(len(group["containers"]) for group in shorter["allocations"])
    assert 0 < kept < 200
    assert shorter["truncated"] == {"allocations": 200 - kept}
    assert shorter["devices"] == status["devices"]
    assert size(tiny) <= 500
    assert tiny["allocations"] == []
    assert tiny["truncated"]["allocations"] == 200
    assert tiny["truncated"]["problems"] > 0


def test_real_status_is_small(tmp_path: Path) -> None:
    """Eight GPUs of four shares, all of them held, fit easily."""
    inventory = t4s(8)
    holders = [
        ContainerDevices(namespace="n" * 30, pod="p" * 60, container="c" * 30, resource=GPU, ids=(f"{one.uuid}::{n}",))
        for one in inventory.gpus
        for n in range(4)
    ]

    status = build_status(facts(tmp_path, inventory=inventory, holders=holders))

    assert "truncated" not in status
    assert len(json.dumps(status)) < reporting.MAX_BYTES / 8
