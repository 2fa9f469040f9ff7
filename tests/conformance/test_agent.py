"""The recorded cases of NVIDIA's device plugin put to a running agent, over gRPC, with a kubelet beside it.

Each with the simulated driver and with the true bindings over a shared library of ours.
"""

from __future__ import annotations

import asyncio
import json
import logging
import tempfile
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from gpushare.agent import app
from gpushare.kubelet.server import PluginClient
from gpushare.kubelet.values import CallFailed, PreferenceRequest, Registration
from support.agents import until_logged
from support.comparing import comparable, comparable_documents, is_as_good, shape_of
from support.described_nodes import build_nvml
from support.driver_roots import CONTROL_NODES, install_driver, make_nodes, numbers_of
from support.drivers import DriverKind, driver_of
from support.kubelets import Kubelet
from support.recorded_cases import Case, read_cases

IMEX_REQUIRED = "t4x4-imex-required"
RUN = "/case"
"""Stands for the directory of the recorded case."""
LEFT_OUT = {
    **dict.fromkeys(
        ("t4x4-nvml-initfail", "t4x4-nolib-nofail"),
        "a driver that cannot be used: `test_lifecycle`",
    ),
    **dict.fromkeys(
        (
            "t4x4-ts-devices-list", "t4x4-ts-explicit-rename", "t4x4-mps-and-ts", "t4x4-unknownfield",
            "a100x2-mighalf-strategy-single", "a100x2-mighet-strategy-single", "a100x2-mps-migsingle",
            "t4x4-badversion", "t4x4-ts-replicas1",
        ),
        "deliberate deviations; `test_plugin` says what is served instead",
    ),
    IMEX_REQUIRED: "a deliberate deviation; `test_a_required_channel_that_is_not_there` says what is served instead",
}  # fmt: skip
LINKS_SECONDS = 60.0
USAGE = ("t4x4-flag-unknown", "t4x4-strategy-bad")
CASES = read_cases("plugin", {*LEFT_OUT, *USAGE})


@dataclass(frozen=True)
class Node:
    """A machine on which an agent runs."""

    kubelet: Kubelet
    root: Path
    has_device_nodes: bool
    """False: plain files stand in their place, since these tests may not make device nodes."""


@asynccontextmanager
async def agent_of(case: Case, driver: DriverKind, folder: Path) -> AsyncIterator[Node]:
    """The agent on the described node, with the recorded flags, environment and configuration."""
    with (
        tempfile.TemporaryDirectory(prefix="gs") as directory,
        driver_of(driver, case.body["node"], folder) as nvml,
    ):
        root = Path(directory)
        has_device_nodes = write_host(case, root)
        flags = [flag.replace("@RUN@", RUN) for flag in case.body["flags"]]
        if case.text:
            (root / "config.json").write_text(case.text)
            flags.append("--config-file=/config.json")
        kubelet = Kubelet(root / "var/lib/kubelet/device-plugins").start()
        stop = asyncio.Event()
        running = asyncio.create_task(
            app.run(
                flags,
                case.body["env"],
                root=root,
                nvml=nvml,
                log=logging.getLogger("agent"),
                stop=stop,
            )
        )
        try:
            yield Node(kubelet, root, has_device_nodes)
        finally:
            stop.set()
            assert await running == 0
            await asyncio.to_thread(kubelet.stop)


def write_host(case: Case, root: Path) -> bool:
    """Everything that the recorded node had; whether its device nodes are real ones."""
    case.machine.write(root)
    install_driver(root / RUN.lstrip("/") / "driver-root", version=case.inventory.driver_version)
    devices = (device for gpu in case.inventory.gpus for device in (gpu, *gpu.mig))
    nodes = numbers_of({path for device in devices for path in device.paths})
    # The node of the recorded cases: it succeeds, unless FAKE_MPS_RC says otherwise.
    control = root / "usr/bin/nvidia-cuda-mps-control"
    control.parent.mkdir(parents=True)
    control.write_text("#!/bin/sh\nexit ${FAKE_MPS_RC:-0}\n")
    control.chmod(0o755)
    return make_nodes(root, {**CONTROL_NODES, **nodes})


@pytest.mark.parametrize("driver", DriverKind)
@pytest.mark.parametrize("case", [pytest.param(case, id=case.name) for case in CASES])
async def test_the_agent_answers_as_recorded(case: Case, driver: DriverKind, tmp_path: Path) -> None:
    """Registrations, device lists, Allocate, GetPreferredAllocation, and what describes devices to container runtimes."""
    recorded = case.body["resources"]
    async with agent_of(case, driver, tmp_path) as node:
        kubelet = node.kubelet
        waits_for_mps = "FAKE_MPS_RC" in case.body["env"]
        expected = {name: 0 if waits_for_mps else len(pool.shares) for name, pool in case.built.pools.items()}
        await kubelet.until(lambda: all(kubelet.total(name) == count for name, count in expected.items()))
        assert {name for name, count in expected.items() if count} == recorded.keys()
        for registration in kubelet.registrations:
            check_registration(registration, kubelet, recorded)
        for name, resource in recorded.items():
            assert listed(kubelet, name) == {
                device["id"]: (device["health"] == "Healthy", tuple(device["numa"])) for device in resource["devices"]
            }
            await asyncio.to_thread(check_allocate, kubelet.clients[name], resource["allocate"])
            await check_preferred(case, name, kubelet.clients[name], resource["preferred"])
        check_descriptions(node, case.body.get("cdi_files") or {})


def check_registration(registration: Registration, kubelet: Kubelet, recorded: dict[str, Any]) -> None:
    """As recorded; what is registered with an empty list counts as not offered."""
    if registration.resource not in recorded:
        assert kubelet.total(registration.resource) == 0
        return
    expected = recorded[registration.resource]
    assert (registration.endpoint, registration.version) == (expected["endpoint"], expected["version"])
    assert registration.options.preferred_allocation == expected["options"]["get_preferred_allocation_available"]
    assert registration.options.pre_start == expected["options"]["pre_start_required"]


def listed(kubelet: Kubelet, resource: str) -> dict[str, tuple[bool, tuple[int, ...]]]:
    return {device.id: (device.healthy, device.numa_nodes) for device in kubelet.lists[resource][-1]}


def check_allocate(client: PluginClient, calls: Sequence[dict[str, Any]]) -> None:
    for call in calls:
        variants = call.get("variants") or [call]
        if "error" in variants[0]:
            with pytest.raises(CallFailed, match=variants[0]["error"]["names"]) as failure:
                client.allocate(call["request"])
            assert failure.value.code == variants[0]["error"]["code"]
            continue
        found = [comparable(shape_of(answer)) for answer in client.allocate(call["request"])]
        assert found in [[comparable(answer) for answer in variant["response"]] for variant in variants]


async def check_preferred(case: Case, resource: str, client: PluginClient, questions: Sequence[dict[str, Any]]) -> None:
    for question in questions:
        request = PreferenceRequest(
            available=tuple(question["available"]), must_include=tuple(question["must_include"]), size=question["size"]
        )
        async with asyncio.timeout(LINKS_SECONDS):
            while True:
                (found,) = await asyncio.to_thread(client.preferred, [request])
                if is_as_good(case.body["node"], case.built.pools[resource], question, found):
                    break
                # How GPUs are connected is read after the first list; until then they are chosen by index.
                await asyncio.sleep(0.02)


def check_descriptions(node: Node, recorded: dict[str, Any]) -> None:
    """The same files with the same content."""
    found = {path.name: json.loads(path.read_text()) for path in (node.root / "var/run/cdi").glob("*")}
    ignored = () if node.has_device_nodes else ("major", "minor", "fileMode")
    assert comparable_documents(found, ignored) == comparable_documents(recorded, ignored)


async def test_a_required_channel_that_is_not_there(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """The recorded program ends; the agent says so and serves the devices without it."""
    (case,) = (case for case in read_cases("plugin") if case.name == IMEX_REQUIRED)
    async with agent_of(case, DriverKind.SIMULATED, tmp_path) as node:
        await node.kubelet.until(lambda: node.kubelet.total("nvidia.com/gpu") == 4)
        (device,) = node.kubelet.ids("nvidia.com/gpu")[:1]
        (answer,) = await asyncio.to_thread(node.kubelet.clients["nvidia.com/gpu"].allocate, [[device]])

        assert answer.envs == {"NVIDIA_VISIBLE_DEVICES": device}
        await until_logged(caplog, "configuration refused")
        (refused,) = (record for record in caplog.records if record.message == "configuration refused")
        assert vars(refused)["problems"][0].startswith("imex.channelIDs: channel 0 is required and has no device node")


@pytest.mark.parametrize(
    "case", [pytest.param(case, id=case.name) for case in read_cases("plugin") if case.name in USAGE]
)
async def test_wrong_usage_ends_it(case: Case, tmp_path: Path) -> None:
    """A command line that cannot be is the one thing that ends the agent by itself, with status 2."""
    status = await app.run(
        case.body["flags"],
        case.body["env"],
        root=tmp_path,
        nvml=build_nvml(case.body["node"]),
        log=logging.getLogger("agent"),
        stop=asyncio.Event(),
    )

    assert status == 2
