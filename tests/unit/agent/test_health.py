"""What reports mean for health."""

from __future__ import annotations

from dataclasses import replace

import pytest

from gpushare.agent import health
from gpushare.agent.health import Mark, XidFilter
from gpushare.agent.options import HealthChecks
from gpushare.domain.devices import Health, Inventory
from gpushare.errors import Problem
from gpushare.nvml.port import Event, EventKind
from support.inventories import gpu, node, split_gpu, t4s

NOW = "2026-01-01T00:00:00Z"
GPU0 = gpu(0).uuid


@pytest.mark.parametrize(
    ("disabled", "enabled", "counted", "ignored"),
    [
        pytest.param("", "", [79, 48, 0], [13, 31, 43, 45, 68, 109], id="built in"),
        pytest.param(" 79 , x,-1", "", [48], [79, 13], id="more ignored"),
        pytest.param("ALL", "", [], [79, 13], id="all off"),
        pytest.param("xids", "", [], [79, 13], id="xids off"),
        pytest.param("all", "79", [79], [48, 13], id="one back on"),
        pytest.param("79", "79", [79], [13], id="on beats off"),
        pytest.param("", "13", [13, 79], [31], id="built in, but one"),
        pytest.param("all", "all", [79, 13], [], id="all on"),
    ],
)
def test_filter(disabled: str, enabled: str, counted: list[int], ignored: list[int]) -> None:
    """NVIDIA's two variables, and what is on stays on when all others are off."""
    checks = XidFilter.parse(HealthChecks(disabled=disabled, enabled=enabled))

    assert all(checks.counts(Event(uuid=GPU0, xid=xid)) for xid in counted)
    assert not any(checks.counts(Event(uuid=GPU0, xid=xid)) for xid in ignored)


def test_ecc_is_no_xid() -> None:
    """A double-bit error comes with an XID of its own."""
    assert not XidFilter().counts(Event(uuid=GPU0, kind=EventKind.DOUBLE_BIT_ECC))


def sick(inventory: Inventory) -> list[str]:
    """Sick GPUs and MIG instances, as `0` and `0:1`."""
    found = [str(one.index) for one in inventory.gpus if not one.health.healthy]
    return found + [f"{g.index}:{m.index}" for g in inventory.gpus for m in g.mig if not m.health.healthy]


@pytest.mark.parametrize(
    ("event", "expected"),
    [
        pytest.param(Event(uuid=GPU0, xid=79), ["0"], id="whole GPU"),
        pytest.param(Event(uuid=GPU0, xid=79, gpu_instance=8), ["0:1"], id="GPU instance"),
        pytest.param(Event(uuid=GPU0, xid=79, gpu_instance=8, compute_instance=0), ["0:1"], id="compute instance"),
        pytest.param(Event(uuid=GPU0, xid=79, gpu_instance=8, compute_instance=3), [], id="another compute instance"),
        pytest.param(Event(uuid=gpu(1).uuid, xid=79, gpu_instance=8), ["1"], id="instance of a GPU without any"),
        pytest.param(Event(uuid="GPU-elsewhere", xid=79), [], id="unknown GPU"),
    ],
)
def test_marks(event: Event, expected: list[str]) -> None:
    """What the report is about is sick, and nothing else."""
    inventory = node(split_gpu(0, "1g.5gb", "1g.5gb"), gpu(1))

    marked = health.apply_marks(inventory, [Mark.of(event, NOW)])

    assert expected == sick(marked)


def test_first_mark_stays() -> None:
    """It tells since when."""
    first, second = (Mark.of(Event(uuid=GPU0, xid=xid), f"{xid}") for xid in (79, 48))

    marked = health.apply_marks(t4s(1), [first, second])

    assert marked.gpus[0].health == Health(healthy=False, reason="XID 79", since="79")


def test_lost_gpu_stays_in_its_place() -> None:
    """It is sick, with the reason; one that went without a problem is gone."""
    now_read = replace(node(gpu(1)), problems=(Problem(path="gpus[0]", message="GPU 0 is lost"),))

    kept = health.keep_lost(t4s(3), now_read, NOW)

    assert [one.index for one in kept.gpus] == [0, 1]
    assert kept.gpus[0].health == Health(healthy=False, reason="GPU 0 is lost", since=NOW)
    assert health.keep_lost(kept, now_read, "later").gpus[0].health.since == NOW
    assert sick(health.keep_lost(kept, t4s(3), "later")) == []


def test_first_reading() -> None:
    """There is nothing to keep."""
    assert health.keep_lost(None, t4s(2), NOW) == t4s(2)


def test_driver_gone() -> None:
    """Everything is sick."""
    assert sick(health.all_lost(t4s(2), "no driver", NOW)) == ["0", "1"]
