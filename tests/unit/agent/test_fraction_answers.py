"""Answers to the kubelet about fractions: which ids, which limits, and who is refused."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from typing import Any

import pytest

from gpushare.agent.fractions import answering
from gpushare.agent.fractions.answering import FractionAnswers
from gpushare.agent.fractions.flight import Entry
from gpushare.agent.fractions.pods import read_pod
from gpushare.api.sharing import Extension, SharingConfig
from gpushare.domain.devices import Inventory, MigStrategy
from gpushare.domain.fractions import Dialect, FractionMode
from gpushare.domain.manifests import Manifest
from gpushare.domain.pools import Pool
from gpushare.kubelet.values import ContainerDevices, PreferenceRequest
from gpushare.sharing.building import build_pools
from gpushare.sharing.fractions import REQUESTED
from gpushare.sharing.responses import RequestRefused, ResponseOptions
from support.bound_pods import UUIDS, bound, grant, units
from support.inventories import XID_79, gpu, node, t4s

OPTIONS = ResponseOptions()


class Desk:
    """Answers with pods, and what they asked of others."""

    def __init__(self, dialect: Dialect = Dialect.HAMI, inventory: Inventory | None = None, **mode: Any) -> None:
        self.refreshes = 0
        self.is_silent = False
        self.others: list[tuple[Entry, Mapping[str, int]]] = []
        self.answers = FractionAnswers(
            FractionMode(dialect=dialect, **mode),
            refresh=self.refresh,
            library=None,
            on_other=lambda entry, counts: self.others.append((entry, counts)),
        )
        self.inventory = inventory or t4s(4)
        self.answers.gpus = {gpu.uuid: gpu for gpu in self.inventory.gpus}
        self.late: list[Manifest] = []
        """What a fresh list shows."""
        self.holders: list[ContainerDevices] = []
        """What the kubelet tells then."""
        with self.answers.changing() as flight:
            flight.see_all([], 0)

    @property
    def pool(self) -> Pool:
        config = SharingConfig(extension=Extension(fractions=self.answers.mode))
        built = build_pools(self.inventory, config, MigStrategy.NONE)
        return built.pools[REQUESTED[self.answers.mode.dialect]]

    def see(self, *pods: Manifest, listed: int = 0) -> None:
        with self.answers.changing(listed=listed) as flight:
            for manifest in pods:
                pod = read_pod(manifest, self.answers.mode.dialect)
                assert pod is not None
                flight.see(pod)
            if self.answers.is_waited_for(listed):
                flight.reopen(self.holders)

    def refresh(self) -> None:
        self.refreshes += 1
        if self.is_silent:
            return
        threading.Thread(target=self.see, args=self.late, kwargs={"listed": self.answers.wanted}).start()

    def prefer(self, size: int, available: tuple[str, ...] = (), must: tuple[str, ...] = ()) -> list[str]:
        request = PreferenceRequest(available=available or tuple(self.pool.by_id), must_include=must, size=size)
        return list(self.answers.prefer(self.pool, request))

    def allocate(self, *ids: str) -> Mapping[str, str]:
        return self.answers.allocate(self.pool, ids, OPTIONS).envs


def slot(gpu: int, number: int = 0) -> str:
    return f"{UUIDS[gpu]}::{number}"


def unit(gpu: int, number: int) -> str:
    return f"{UUIDS[gpu]}-_-{number}"


def test_steered_and_answered() -> None:
    """The kubelet is led to the GPU that was decided on; the container gets what was decided."""
    desk = Desk()
    desk.see(bound("a", {"main": (grant(2),)}))

    assert desk.prefer(1) == [slot(2)]
    envs = desk.allocate(slot(2))

    assert envs["NVIDIA_VISIBLE_DEVICES"] == UUIDS[2]
    assert (envs["CUDA_DEVICE_MEMORY_LIMIT_0"], envs["CUDA_DEVICE_SM_LIMIT"]) == ("3000m", "30")
    assert (desk.refreshes, desk.others) == (0, [])


def test_all_units_on_one_gpu() -> None:
    """And the environment tells which, and how much of it."""
    desk = Desk(Dialect.ALIYUN)
    desk.see(bound("a", {"main": (units(4, 1),), "side": (units(2, 1),)}, dialect=Dialect.ALIYUN))

    chosen = desk.prefer(4)
    envs = desk.allocate(*chosen)

    assert chosen == [unit(1, number) for number in range(4)]
    assert {name: value for name, value in envs.items() if name.startswith("ALIYUN")} == {
        "ALIYUN_COM_GPU_MEM_IDX": "1",
        "ALIYUN_COM_GPU_MEM_POD": "6",
        "ALIYUN_COM_GPU_MEM_CONTAINER": "4",
        "ALIYUN_COM_GPU_MEM_DEV": "15",
    }


@pytest.mark.parametrize(
    ("amounts", "inits", "whole"),
    [
        pytest.param({"init": 6, "a": 2, "b": 3}, ("init",), "6", id="an init container takes more than the others"),
        pytest.param({"init": 4, "a": 2, "b": 3}, ("init",), "5", id="the others take more"),
        pytest.param({"init": 4}, ("init",), "4", id="an init container alone"),
    ],
)
def test_units_of_init_containers(amounts: Mapping[str, int], inits: tuple[str, ...], whole: str) -> None:
    """The pod has what it takes at its busiest moment."""
    desk = Desk(Dialect.ALIYUN)
    containers = {name: (units(amount),) for name, amount in amounts.items()}
    desk.see(bound("a", containers, dialect=Dialect.ALIYUN, inits=inits))

    envs = desk.allocate(*desk.prefer(next(iter(amounts.values()))))

    assert envs["ALIYUN_COM_GPU_MEM_POD"] == whole


def test_units_over_two_gpus() -> None:
    """As many of each as was decided."""
    desk = Desk(Dialect.ALIYUN)
    desk.see(bound("a", {"main": (units(2, 1), units(2, 3))}, dialect=Dialect.ALIYUN))

    chosen = desk.prefer(4)

    assert sorted(chosen) == [unit(1, 0), unit(1, 1), unit(3, 0), unit(3, 1)]
    assert desk.allocate(*chosen)["ALIYUN_COM_GPU_MEM_IDX"] == "1,3"


@pytest.mark.parametrize(
    ("available", "must", "expected"),
    [
        pytest.param((slot(2, 4), slot(2, 5)), (slot(2, 5),), [slot(2, 5)], id="what must be included"),
        pytest.param((slot(0), slot(1)), (), [], id="none of it is free: the kubelet's choice"),
        pytest.param((slot(0), slot(2)), (slot(0),), [slot(0)], id="what must be included is another"),
    ],
)
def test_preference(available: tuple[str, ...], must: tuple[str, ...], expected: list[str]) -> None:
    """A hint at most; what the kubelet insists on comes first."""
    desk = Desk()
    desk.see(bound("a", {"main": (grant(2),)}))

    assert desk.prefer(1, available, must) == expected


def test_the_kubelet_chose_otherwise() -> None:
    """The ids are the truth: the limits go with the container, and it is told."""
    desk = Desk()
    desk.see(bound("a", {"main": (grant(2),)}))

    envs = desk.allocate(slot(3))

    assert envs["NVIDIA_VISIBLE_DEVICES"] == UUIDS[3]
    assert envs["CUDA_DEVICE_MEMORY_LIMIT_0"] == "3000m"
    assert [(entry.pod.name, counts) for entry, counts in desk.others] == [("a", {UUIDS[3]: 1})]


@pytest.mark.parametrize(
    ("held", "wanted", "message"),
    [
        pytest.param(grant(3, 14000, 0), grant(2, 3000, 0), "where 1360 MiB are left of 3000", id="memory"),
        pytest.param(grant(3, 1000, 80), grant(2, 1000, 30), "too little of the 30 % of compute", id="compute"),
    ],
)
def test_no_room_where_the_kubelet_chose(held: Any, wanted: Any, message: str) -> None:
    """Nothing that was promised to others is given away."""
    desk = Desk()
    desk.see(bound("old", {"main": (held,)}, status={"phase": "Running", "startTime": "2026-11-29T12:00:00Z"}))
    desk.see(bound("a", {"main": (wanted,)}))

    with pytest.raises(RequestRefused, match=message):
        desk.allocate(slot(3))


def test_pod_of_which_the_watch_has_not_told() -> None:
    """A fresh list is waited for, once."""
    desk = Desk()
    desk.late = [bound("a", {"main": (grant(1),)})]

    assert desk.prefer(1) == [slot(1)]
    assert desk.refreshes == 1


def test_pod_whose_answer_went_to_one_that_is_gone() -> None:
    """The kubelet asked for one that had been deleted by force, and gets the same answer again for the one that it has."""
    desk = Desk()
    gone, left = (bound(name, {"main": (grant(gpu),)}) for gpu, name in enumerate(("gone", "left")))
    desk.see(gone, left)
    with desk.answers.changing() as flight:
        flight.forget("uid-gone")
    desk.allocate(*desk.prefer(1))
    desk.holders = [
        ContainerDevices(namespace="default", pod="gone", container="main", resource="nvidia.com/gpu", ids=(slot(1),))
    ]

    assert desk.prefer(1, available=(slot(1, 1),)) == [slot(1, 1)]
    assert desk.allocate(slot(1, 1))["NVIDIA_VISIBLE_DEVICES"] == UUIDS[1]
    assert desk.refreshes == 1


def test_pod_that_nobody_placed() -> None:
    """It tolerates the taint and asks for a GPU: refused, at the first question, by name."""
    desk = Desk()
    desk.late = [bound("plain", {"main": (grant(),)}, annotation="")]

    with pytest.raises(RequestRefused, match="default/plain is not let in: no scheduler of fractions has placed it"):
        desk.prefer(1)
    with pytest.raises(RequestRefused, match=r'invalid request for "nvidia.com/gpu": default/plain'):
        desk.allocate(slot(0))


def test_api_server_that_does_not_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    """Then nobody knows, and the kubelet does not wait for ever."""
    monkeypatch.setattr(answering, "PATIENCE_SECONDS", 0.05)
    desk = Desk()
    desk.is_silent = True
    with pytest.raises(RequestRefused, match="cannot be listed: the API server does not answer"):
        desk.allocate(slot(0))
    desk.answers.trouble = "no route to host"
    with pytest.raises(RequestRefused, match="cannot be listed: no route to host"):
        desk.allocate(slot(0))


@pytest.mark.parametrize(
    "inventory",
    [
        pytest.param(node(gpu(0), gpu(2)), id="gone"),
        pytest.param(node(gpu(0), gpu(1, health=XID_79), gpu(2)), id="sick"),
    ],
)
def test_gpu_that_vanished(inventory: Inventory) -> None:
    """Between decision and Allocate: no other GPU is taken for it."""
    desk = Desk(inventory=inventory)
    desk.see(bound("a", {"main": (grant(1),)}))

    with pytest.raises(RequestRefused, match="which this node does not have any more, or not in good health"):
        desk.prefer(1)


@pytest.mark.parametrize(
    ("pods", "reason"),
    [
        pytest.param([bound("plain", {"main": (grant(),)}, annotation="")], "NotPlaced", id="nobody placed it"),
        pytest.param(
            [bound("a", {"main": (grant(0, 1000),)}, shape="a"), bound("b", {"main": (grant(1, 2000),)}, shape="b")],
            "Ambiguous",
            id="two that differ",
        ),
        pytest.param([bound("a", {"main": (grant(3),)})], "GPUGone", id="a GPU that is gone"),
    ],
)
def test_refusals_are_counted(pods: list[Manifest], reason: str) -> None:
    """By a word for metrics."""
    desk = Desk(inventory=t4s(3))
    desk.see(*pods)
    with pytest.raises(RequestRefused):
        desk.prefer(1)

    assert desk.answers.refusals == {reason: 1}


def test_unknown_id() -> None:
    """Refused in the words of NVIDIA's device plugin."""
    desk = Desk()
    desk.see(bound("a", {"main": (grant(1),)}))

    with pytest.raises(RequestRefused, match="unknown device: nothing"):
        desk.allocate("nothing")


def test_counts_are_not_given_out() -> None:
    """`aliyun.com/gpu-count` is for people."""
    desk = Desk(Dialect.ALIYUN)
    config = SharingConfig(extension=Extension(fractions=desk.answers.mode))
    pool = build_pools(desk.inventory, config, MigStrategy.NONE).pools["aliyun.com/gpu-count"]

    with pytest.raises(RequestRefused, match="only says how many GPUs a node has"):
        desk.answers.allocate(pool, [UUIDS[0]], OPTIONS)
