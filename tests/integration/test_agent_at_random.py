"""An agent beside a simulated kubelet, to which anything happens in any order: pods, restarts, configurations, broken GPUs.

After each step it has to come to what configuration and hardware say, and what did not change must not have been touched.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import threading
import time
from collections import Counter
from collections.abc import Coroutine, Mapping
from itertools import pairwise
from typing import Any, Final

import hypothesis.strategies as st
import pytest
from hypothesis import HealthCheck, settings
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from gpushare.agent import configuration, devices, holding, troubles
from gpushare.agent.discovery import read_inventory
from gpushare.agent.running import STATE_FILE
from gpushare.api.parsing import parse_sharing
from gpushare.domain.devices import MigStrategy
from gpushare.domain.pools import Pool
from gpushare.host.files import HostFiles
from gpushare.kubelet import lifecycle
from gpushare.kubelet.values import ContainerDevices, PreferenceRequest
from gpushare.nvml.port import Event, Recovery
from gpushare.nvml.simulated import SimulatedNvml
from gpushare.sharing.building import build_pools
from support.agents import Machine, devices_of, machine

NODES: Final[Mapping[str, tuple[Mapping[str, Any], MigStrategy]]] = {
    "whole": ({"gpus": [{"model": "Tesla-T4", "count": 3}]}, MigStrategy.NONE),
    "divided": (
        {"gpus": [{"model": "A100-SXM4-40GB", "mig": ["1g.5gb", "1g.5gb"]}, {"model": "A100-SXM4-40GB"}]},
        MigStrategy.MIXED,
    ),
}
GOOD: Final = (
    "version: v1\n",
    *(f"sharing: {{timeSlicing: {{resources: [{{name: nvidia.com/gpu, replicas: {n}}}]}}}}\n" for n in (2, 3)),
    "sharing: {timeSlicing: {renameByDefault: true, resources: [{name: nvidia.com/gpu, replicas: 2}]}}\n",
    "sharing: {timeSlicing: {resources: [{name: nvidia.com/gpu, replicas: 4, devices: 1}]}}\n",
    "sharing: {timeSlicing: {resources: [{name: nvidia.com/mig-1g.5gb, replicas: 2}]}}\n",
)
BAD: Final = (
    "sharing: 1\n",
    "{",
    "sharing: {timeSlicing: {resources: [{name: nvidia.com/gpu, replicas: 2, devices: [9]}]}}\n",
)
WAIT_SECONDS: Final = 60.0
FIRST: Final = 2
"""GPUs that things happen to; every node has as many."""
gpu_indices = st.integers(0, FIRST - 1)


class Node(RuleBasedStateMachine):
    """One node's agent, kubelet and GPUs, and what they should have come to."""

    def __init__(self) -> None:
        super().__init__()
        self.exits = contextlib.ExitStack()
        self.loop = asyncio.new_event_loop()
        self.thread = threading.Thread(target=self.loop.run_forever)
        self.thread.start()

    @initialize(kind=st.sampled_from(sorted(NODES)), text=st.sampled_from(GOOD))
    def begin(self, kind: str, text: str) -> None:
        description, self.strategy = NODES[kind]
        self.node: Machine = self.exits.enter_context(machine(description))
        self.kubelet = self.node.kubelet.start()
        # Another process's view of the same driver, which stays connected whatever the agent does.
        self.hardware: SimulatedNvml = self.node.nvml.connect()
        self.hardware.start()
        self.healthy = read_inventory(self.hardware, HostFiles(self.node.root))
        self.text = self.in_force = text
        self.lost: set[int] = set()
        self.sick: set[int] = set()
        self.pods: dict[str, ContainerDevices] = {}
        self.names: set[str] = set()
        self.seen: Counter[str] = Counter()
        self.registered: Counter[str] = Counter()
        self.node.configure(text)
        self.start_agent()

    def start_agent(self) -> None:
        self.agent = contextlib.AsyncExitStack()
        flags = ("--config-file", "/config.yaml", "--mig-strategy", self.strategy)
        self.do(self.agent.enter_async_context(self.node.agent(*flags, nvml=self.node.nvml.connect())))

    def do(self, work: Coroutine[Any, Any, Any]) -> None:
        asyncio.run_coroutine_threadsafe(work, self.loop).result(WAIT_SECONDS)

    # What happens.

    @rule(data=st.data(), size=st.integers(1, 3))
    def start_pod(self, data: st.DataObject, size: int) -> None:
        """The kubelet chooses among what is free, asks for a preference, and allocates."""
        free = {name: ids for name in self.kubelet.lists if len(ids := self.free(name)) >= size}
        if not free:
            return
        name = data.draw(st.sampled_from(sorted(free)))
        client = self.kubelet.clients[name]
        (preferred,) = client.preferred([PreferenceRequest(available=free[name], size=size)])
        assert len(preferred) == size
        assert set(preferred) <= set(free[name])
        ids = preferred if data.draw(st.booleans()) else free[name][:size]
        (answer,) = client.allocate([ids])
        visible = answer.envs["NVIDIA_VISIBLE_DEVICES"].split(",")
        assert len(visible) == len(set(visible))
        assert set(visible) == devices_of(ids)
        pod = f"pod-{len(self.pods)}-{data.draw(st.uuids())}"
        self.pods[pod] = ContainerDevices(namespace="n", pod=pod, container="c", resource=name, ids=tuple(ids))
        self.node.holders = list(self.pods.values())

    @precondition(lambda self: self.pods)
    @rule(data=st.data())
    def end_pod(self, data: st.DataObject) -> None:
        del self.pods[data.draw(st.sampled_from(sorted(self.pods)))]
        self.node.holders = list(self.pods.values())

    @rule(text=st.sampled_from((*GOOD, *BAD)))
    def configure(self, text: str) -> None:
        self.text = text
        self.in_force = text if text in GOOD else self.in_force
        self.node.configure(text)

    @rule()
    def restart_agent(self) -> None:
        self.do(self.agent.aclose())
        self.forget_streams()
        self.start_agent()

    @rule()
    def restart_kubelet(self) -> None:
        self.kubelet.stop()
        self.forget_streams()
        self.kubelet.start()

    @rule(gpu=gpu_indices)
    def lose(self, gpu: int) -> None:
        self.lost.add(gpu)
        self.node.nvml.lose(gpu)
        if gpu in self.sick:
            # Nothing of it shows, and what ends with a reset ends only if the loss was seen.
            self.until_known_as_lost(self.healthy.gpus[gpu].uuid)

    @rule(gpu=gpu_indices)
    def restore(self, gpu: int) -> None:
        if gpu in self.lost:
            # Nothing but a reset brings it back, so that nothing is wrong with it any more.
            self.sick.discard(gpu)
            self.lost.discard(gpu)
            self.node.nvml.restore(gpu)

    @rule(gpu=gpu_indices)
    def hurt(self, gpu: int) -> None:
        if gpu not in self.lost:
            self.sick.add(gpu)
            self.node.nvml.ask_for(gpu, Recovery.RESET)
            self.node.nvml.inject(Event(uuid=self.healthy.gpus[gpu].uuid, xid=79))

    @rule(gpu=gpu_indices)
    def mend(self, gpu: int) -> None:
        if gpu not in self.lost:
            self.sick.discard(gpu)
            self.node.nvml.ask_for(gpu, Recovery.NONE)

    @rule(gpu=gpu_indices)
    def run_a_broken_program(self, gpu: int) -> None:
        self.node.nvml.inject(Event(uuid=self.healthy.gpus[gpu].uuid, xid=31))

    # What has to be so, once it is quiet.

    @invariant()
    def it_comes_to_what_should_be(self) -> None:
        """The lists are what configuration and hardware say: nothing of a sick GPU is offered as healthy."""
        wanted = {name: self.offered(pool) for name, pool in self.pools().items()}
        self.names |= wanted.keys()
        wanted |= {name: {} for name in self.names - wanted.keys()}
        self.until(lambda: all(self.listed(name) == devices for name, devices in wanted.items()))
        self.registered.update({name: 1 for name in wanted if not self.registered[name]})

    @invariant()
    def nothing_is_touched_that_did_not_change(self) -> None:
        """One registration a resource and life of its stream, no stream that ended, no list that says what the last one said."""
        found = Counter(self.kubelet.registered())
        assert found == self.registered
        for name, lists in self.kubelet.lists.items():
            fresh = lists[self.seen[name] :]
            assert all(one != other for one, other in pairwise(fresh))

    def pools(self) -> Mapping[str, Pool]:
        config = parse_sharing(self.in_force).config
        assert config is not None
        return build_pools(self.healthy, config, self.strategy).pools

    def offered(self, pool: Pool) -> dict[str, bool]:
        bad = self.lost | self.sick
        return {str(share.id): share.gpu_index not in bad for share in pool.shares}

    def listed(self, name: str) -> dict[str, bool] | None:
        lists = self.kubelet.lists.get(name, [])[self.seen[name] :]
        return {device.id: device.healthy for device in lists[-1]} if lists else None

    def free(self, name: str) -> tuple[str, ...]:
        held = {id_ for pod in self.pods.values() if pod.resource == name for id_ in pod.ids}
        return tuple(id_ for id_, healthy in (self.listed(name) or {}).items() if healthy and id_ not in held)

    def forget_streams(self) -> None:
        """Those of before have ended, and every resource has to be registered again."""
        self.seen = Counter({name: len(lists) for name, lists in self.kubelet.lists.items()})
        self.registered.update(self.names)

    def until_known_as_lost(self, uuid: str) -> None:
        deadline = time.monotonic() + WAIT_SECONDS
        while time.monotonic() < deadline:
            troubles = json.loads((self.node.root / STATE_FILE.lstrip("/")).read_text())["troubles"]
            if any(one["gpu"] == uuid and one["cause"] == "lost" for one in troubles):
                return
            time.sleep(0.01)
        pytest.fail("the loss of a GPU is not noticed")

    def until(self, expected: Any) -> None:
        assert self.kubelet._wait(expected), {
            "in force": self.in_force,
            "lost": self.lost,
            "sick": self.sick,
            "listed": {name: self.listed(name) for name in self.kubelet.lists},
        }

    def teardown(self) -> None:
        if hasattr(self, "agent"):
            self.do(self.agent.aclose())
        self.exits.close()
        self.loop.call_soon_threadsafe(self.loop.stop)
        self.thread.join()
        self.loop.close()


@pytest.mark.timeout(400)
def test_anything_in_any_order(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever happens, it comes to what should be, and only what changes is touched."""
    monkeypatch.setattr(configuration, "FILE_POLL_SECONDS", 0.02)
    monkeypatch.setattr(holding, "PAUSE_SECONDS", 0.02)
    monkeypatch.setattr(devices, "WAIT_SECONDS", 0.01)
    monkeypatch.setattr(devices, "READ_SECONDS", 0.1)
    monkeypatch.setattr(devices, "RECOVERY_SECONDS", 0.02)
    monkeypatch.setattr(troubles, "QUIET_SECONDS", 0.05)
    monkeypatch.setattr(troubles, "LONGEST_QUIET_SECONDS", 0.1)
    monkeypatch.setattr(lifecycle, "POLL_SECONDS", 0.05)
    run_state_machine_as_test(
        Node,
        settings=settings(
            max_examples=8, stateful_step_count=20, deadline=None, suppress_health_check=list(HealthCheck)
        ),
    )
