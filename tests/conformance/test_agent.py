"""The recorded cases of NVIDIA's device plugin put to a running agent, over gRPC, with a kubelet beside it.

Each with the simulated driver and with the true bindings over a shared library of ours.
"""

from __future__ import annotations

import asyncio
import logging
import tempfile
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from gpushare.agent import app
from gpushare.kubelet.server import PluginClient
from gpushare.kubelet.values import CallFailed, PreferenceRequest, Registration
from support.comparing import comparable, is_as_good, shape_of
from support.described_nodes import CONTROL_DEVICES, FakeMachine, build_nvml
from support.drivers import DriverKind, driver_of
from support.kubelets import Kubelet
from support.recorded_cases import Case, read_cases

LEFT_OUT = {
    **dict.fromkeys(
        (
            "a100x4-migmixed-cdi-cri", "t4x4-cdi-annotations", "t4x4-cdi-annotations-prefix", "t4x4-cdi-cri",
            "t4x4-cdi-cri-devroot", "t4x4-ts4-cdi-cri",
        ),
        "CDI needs specification files, which the agent does not write yet; the names are held in `test_plugin`",
    ),
    **dict.fromkeys(
        ("a100x8-bridge-default", "a100x8-nvswitch-default"),
        "which GPUs are close to each other comes with the allocation library; all else of them is held in `test_plugin`",
    ),
    **dict.fromkeys(
        ("t4x4-nvml-initfail", "t4x4-nolib-nofail"),
        "what the driver refuses is the agent's own matter: its unit tests have a driver that fails",
    ),
    **dict.fromkeys(
        (
            "t4x4-ts-devices-list", "t4x4-ts-explicit-rename", "t4x4-mps-and-ts", "t4x4-unknownfield",
            "a100x2-mighalf-strategy-single", "a100x2-mighet-strategy-single", "a100x2-mps-migsingle",
            "t4x4-badversion", "t4x4-ts-replicas1", "t4x4-imex-required",
        ),
        "deliberate deviations; `test_plugin` says what is served instead",
    ),
}  # fmt: skip
USAGE = ("t4x4-flag-unknown", "t4x4-strategy-bad")
CASES = read_cases("plugin", {*LEFT_OUT, *USAGE})


@asynccontextmanager
async def agent_of(case: Case, driver: DriverKind, folder: Path) -> AsyncIterator[Kubelet]:
    """The agent on the described node, with the recorded flags, environment and configuration."""
    with (
        tempfile.TemporaryDirectory(prefix="gs") as directory,
        driver_of(driver, case.body["node"], folder) as nvml,
    ):
        root = Path(directory)
        write_host(case, root)
        flags = list(case.body["flags"])
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
            yield kubelet
        finally:
            stop.set()
            assert await running == 0
            await asyncio.to_thread(kubelet.stop)


def write_host(case: Case, root: Path) -> None:
    FakeMachine({**case.machine.files, **dict.fromkeys(CONTROL_DEVICES, b"")}).write(root)
    # The node of the recorded cases: it succeeds, unless FAKE_MPS_RC says otherwise.
    control = root / "usr/bin/nvidia-cuda-mps-control"
    control.parent.mkdir(parents=True)
    control.write_text("#!/bin/sh\nexit ${FAKE_MPS_RC:-0}\n")
    control.chmod(0o755)


@pytest.mark.parametrize("driver", DriverKind)
@pytest.mark.parametrize("case", [pytest.param(case, id=case.name) for case in CASES])
async def test_the_agent_answers_as_recorded(case: Case, driver: DriverKind, tmp_path: Path) -> None:
    """Registrations, device lists, Allocate and GetPreferredAllocation."""
    recorded = case.body["resources"]
    async with agent_of(case, driver, tmp_path) as kubelet:
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
            await asyncio.to_thread(check_preferred, case, name, kubelet.clients[name], resource["preferred"])


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


def check_preferred(case: Case, resource: str, client: PluginClient, questions: Sequence[dict[str, Any]]) -> None:
    for question in questions:
        request = PreferenceRequest(
            available=tuple(question["available"]), must_include=tuple(question["must_include"]), size=question["size"]
        )
        (found,) = client.preferred([request])
        assert is_as_good(case.body["node"], case.built.pools[resource], question, found)


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
