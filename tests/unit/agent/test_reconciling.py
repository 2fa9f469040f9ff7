"""One pass: what is held back, and what is remembered."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from gpushare.agent.deciding import Assignment, Decider, Decision
from gpushare.agent.memory import Memory
from gpushare.agent.options import AgentOptions
from gpushare.agent.reconciling import Reconciler
from gpushare.domain.devices import Inventory
from gpushare.host.files import HostFiles
from gpushare.host.state import StateFile
from gpushare.kubelet.values import ContainerDevices
from support.inventories import gpu, t4s

GPU = "nvidia.com/gpu"
LOG = logging.getLogger("test")


def assigned(replicas: int, *, refuse: bool = False) -> Assignment:
    text = f"sharing: {{timeSlicing: {{resources: [{{name: nvidia.com/gpu, replicas: {replicas}}}]}}}}\n"
    return Assignment(content=text + ("gpushare: {onShrink: refuse}\n" if refuse else ""))


class Pools:
    """Remembers how many shares it was told to serve, each time."""

    def __init__(self) -> None:
        self.applied: list[int] = []

    async def serve(self, decision: Decision, _: Inventory | None) -> Decision:
        self.applied.append(len(decision.pools[GPU].shares))
        return decision


class Passes:
    """A reconciler with a kubelet that answers as scripted, the last answer for ever."""

    def __init__(self, folder: Path) -> None:
        self.pools = Pools()
        self.in_use: list[int] = [0]
        self.is_silent = False
        """Whether the kubelet has not told anything yet."""
        self.others: tuple[ContainerDevices, ...] = ()
        """Who holds something by another name besides."""
        self.pods = 0
        """How many pods hold them, one each; 0: one pod holds all."""
        files = HostFiles(folder)
        self.executor = ThreadPoolExecutor(1)
        self.memory = Memory(StateFile(folder / "state.json", LOG), self.executor)
        self.reconciler = Reconciler(
            Decider(AgentOptions(), files),
            self.pools.serve,
            self.memory,
            self.executor,
            read_holders=self.read_holders,
        )

    async def read_holders(self) -> Sequence[ContainerDevices] | None:
        if self.is_silent:
            return None
        count = self.in_use.pop(0) if len(self.in_use) > 1 else self.in_use[0]
        ids = [f"{gpu(0).uuid}::{number}" for number in range(count)]
        if not self.pods:
            held = ContainerDevices(namespace="n", pod="p", container="c", resource=GPU, ids=tuple(ids))
            return (held, *self.others)
        return tuple(
            ContainerDevices(namespace="n", pod=f"p{number}", container="c", resource=GPU, ids=(one,))
            for number, one in enumerate(ids)
        )

    async def close(self) -> None:
        await self.memory.close()
        self.executor.shutdown()


@pytest.mark.parametrize(
    ("refuse", "in_use", "applied", "is_held_back"),
    [
        pytest.param(False, [8], [8, 4], False, id="not asked to"),
        pytest.param(True, [4], [8, 4], False, id="fits"),
        pytest.param(True, [5], [8, 8], True, id="too many in use"),
        pytest.param(True, [3, 5], [8, 4, 8], True, id="taken while it was announced"),
    ],
)
async def test_shrinking(
    tmp_path: Path, *, refuse: bool, in_use: list[int], applied: list[int], is_held_back: bool
) -> None:
    """Announced, read again, and taken back if it turns out to be over."""
    passes = Passes(tmp_path)
    await passes.reconciler.reconcile(assigned(4), t4s(2))
    passes.in_use = in_use

    decision = await passes.reconciler.reconcile(assigned(2, refuse=refuse), t4s(2))

    assert passes.pools.applied == applied
    assert passes.reconciler.is_held_back is is_held_back
    assert bool(decision.refusal) is is_held_back
    await passes.close()


async def test_shrinking_counts_after_a_restart_too(tmp_path: Path) -> None:
    """What was in force stands in the state file."""
    before = Passes(tmp_path)
    await before.reconciler.reconcile(assigned(4), t4s(2))
    await before.close()
    passes = Passes(tmp_path)
    passes.in_use = [5]

    decision = await passes.reconciler.reconcile(assigned(2, refuse=True), t4s(2))

    assert passes.pools.applied == [8]
    text = "5 of nvidia.com/gpu are in use by n/p and only 4 would be left; delete pods first"
    assert text in decision.refusal[0].message
    await passes.close()


async def test_nobody_knows_how_much_is_in_use(tmp_path: Path) -> None:
    """Before the kubelet has told, fewer shares may be too few; as many as before, or more, never are."""
    passes = Passes(tmp_path)
    await passes.reconciler.reconcile(assigned(4), t4s(2))
    passes.is_silent = True

    decision = await passes.reconciler.reconcile(assigned(2, refuse=True), t4s(2))

    assert (passes.pools.applied, passes.reconciler.is_held_back) == ([8, 8], True)
    text = (
        "gpushare.onShrink: the kubelet does not tell how many of nvidia.com/gpu are in use, and only 4 would be left"
    )
    assert text in str(decision.refusal[0])
    decision = await passes.reconciler.reconcile(assigned(8, refuse=True), t4s(2))
    assert (passes.pools.applied, decision.refusal) == ([8, 8, 16], ())
    passes.is_silent = False
    await passes.reconciler.reconcile(assigned(2, refuse=True), t4s(2))
    assert (passes.pools.applied, passes.reconciler.is_held_back) == ([8, 8, 16, 4], False)
    await passes.close()


async def test_nobody_knows_who_has_parts(tmp_path: Path) -> None:
    """Before the kubelet has told, parts of GPUs may be in use."""
    passes = Passes(tmp_path)
    await passes.reconciler.reconcile(Assignment(content="gpushare: {fractions: hami}"), t4s(2))
    passes.is_silent = True

    decision = await passes.reconciler.reconcile(Assignment(content="version: v1"), t4s(2))

    assert passes.reconciler.is_held_back
    assert "the kubelet does not tell by whom" in str(decision.refusal[0])
    await passes.close()


@pytest.mark.parametrize(
    ("isolation", "ids", "is_held_back"),
    [
        pytest.param("none", 2, True, id="parts in use"),
        pytest.param("none", 0, False, id="nothing in use"),
        pytest.param("exclusive", 0, False, id="exclusive, nothing in use"),
    ],
)
async def test_parts_of_gpus_before_whole_ones(tmp_path: Path, isolation: str, ids: int, is_held_back: bool) -> None:
    """A GPU of which a pod has a part is not given out as a whole, though the kubelet would take it for free."""
    passes = Passes(tmp_path)
    text = f"gpushare: {{fractions: hami, slots: 4, isolation: {isolation}}}"
    await passes.reconciler.reconcile(Assignment(content=text), t4s(2))
    passes.in_use = [ids]

    decision = await passes.reconciler.reconcile(Assignment(content="version: v1"), t4s(2))

    assert passes.reconciler.is_held_back is is_held_back
    assert (decision.fractions is not None) is is_held_back
    if is_held_back:
        assert str(decision.refusal[0]).startswith(
            "gpushare.fractions: parts of GPUs are in use by n/p, and the same GPUs"
        )
        passes.in_use = [0]
        decision = await passes.reconciler.reconcile(Assignment(content="version: v1"), t4s(2))
    assert (len(decision.pools[GPU].shares), decision.refusal) == (2, ())
    await passes.close()


async def test_parts_in_other_words_before_whole_ones(tmp_path: Path) -> None:
    """A node may have changed its dialect while pods run: what they hold in the words from before counts until they go."""
    passes = Passes(tmp_path)
    await passes.reconciler.reconcile(Assignment(content="gpushare: {fractions: aliyun}"), t4s(2))
    ids = (f"{gpu(0).uuid}-_-0",)
    passes.others = (ContainerDevices(namespace="n", pod="q", container="c", resource="aliyun.com/gpu-mem", ids=ids),)
    await passes.reconciler.reconcile(Assignment(content="gpushare: {fractions: hami}"), t4s(2))

    decision = await passes.reconciler.reconcile(Assignment(content="version: v1"), t4s(2))

    assert passes.reconciler.is_held_back
    assert "parts of GPUs are in use by n/q, and the same GPUs" in decision.refusal[0].message
    passes.others = ()
    decision = await passes.reconciler.reconcile(Assignment(content="version: v1"), t4s(2))
    assert (len(decision.pools[GPU].shares), decision.refusal) == (2, ())
    await passes.close()


async def test_refused_shrink_names_pods(tmp_path: Path) -> None:
    """People are told whom to delete; of many, a few."""
    passes = Passes(tmp_path)
    passes.pods = 8
    await passes.reconciler.reconcile(assigned(4), t4s(2))
    passes.in_use = [8]

    decision = await passes.reconciler.reconcile(assigned(2, refuse=True), t4s(2))

    assert "in use by n/p0, n/p1, n/p2, n/p3, n/p4 and 3 more and only" in decision.refusal[0].message
    await passes.close()
