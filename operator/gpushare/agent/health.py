"""What reports of GPUs and failures to read them mean for health. Pure; the agent's device watch asks.

A report marks the physical GPU, or the MIG instance that it names; every share of it is sick then, in every resource. A
GPU that cannot be read is sick until it can be read again. One that reported an error stays so until the agent starts anew.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Final, Self

from gpushare.agent.options import HealthChecks
from gpushare.domain.devices import GPU, Health, Inventory, MigInstance
from gpushare.nvml.port import Event, EventKind

IGNORED_XIDS: Final = frozenset({13, 31, 43, 45, 68, 109})
"""Errors of applications, not of GPUs. Same list as NVIDIA's device plugin."""
_ALL: Final = "all"


@dataclass(frozen=True, slots=True, kw_only=True)
class XidFilter:
    """Which XIDs make a GPU sick."""

    ignored: frozenset[int] = IGNORED_XIDS
    ignores_all: bool = False
    counted: frozenset[int] = frozenset()
    """Beats the other two."""
    counts_all: bool = False

    @classmethod
    def parse(cls, checks: HealthChecks) -> Self:
        """Reads the two variables. What is no number there is skipped, as by NVIDIA's device plugin."""
        disabled, enabled = frozenset(_words(checks.disabled)), frozenset(_words(checks.enabled))
        return cls(
            ignored=IGNORED_XIDS | _numbers(disabled),
            ignores_all=bool(disabled & {_ALL, "xids"}),
            counted=_numbers(enabled),
            counts_all=_ALL in enabled,
        )

    def counts(self, event: Event) -> bool:
        """Whether this report makes a GPU sick; ECC reports by themselves do not."""
        if event.kind is not EventKind.XID:
            return False
        if self.counts_all or event.xid in self.counted:
            return True
        return not self.ignores_all and event.xid not in self.ignored


@dataclass(frozen=True, slots=True, kw_only=True)
class Mark:
    """One GPU or MIG instance that was found sick."""

    uuid: str
    """Of the physical GPU."""
    gpu_instance: int | None
    compute_instance: int | None
    health: Health

    @classmethod
    def of(cls, event: Event, now: str) -> Self:
        """What a report says."""
        return cls(
            uuid=event.uuid,
            gpu_instance=event.gpu_instance,
            compute_instance=event.compute_instance,
            health=Health(healthy=False, reason=f"XID {event.xid}", since=now),
        )

    def hits(self, instance: MigInstance) -> bool:
        """Whether it is about this MIG instance of its GPU."""
        if self.gpu_instance not in {None, instance.gpu_instance}:
            return False
        return self.compute_instance in {None, instance.compute_instance}


def apply_marks(inventory: Inventory, marks: Iterable[Mark]) -> Inventory:
    """The inventory with what the marks say; the first mark of a device stays, since it tells since when."""
    gpus = {gpu.uuid: gpu for gpu in inventory.gpus}
    for mark in marks:
        if mark.uuid in gpus:
            gpus[mark.uuid] = _marked(gpus[mark.uuid], mark)
    return replace(inventory, gpus=tuple(gpus.values()))


def keep_lost(before: Inventory | None, now_read: Inventory, now: str) -> Inventory:
    """The new inventory, in which a GPU that was there before and cannot be read now stays, sick, with the reason.

    It would vanish from the kubelet's list otherwise, and come back as if it were another one.
    """
    if before is None:
        return now_read
    reasons = {problem.path: problem.message for problem in now_read.problems}
    lost = tuple(_lost(before, reasons, now))
    return replace(now_read, gpus=tuple(sorted((*now_read.gpus, *lost), key=lambda gpu: gpu.index)))


def all_lost(before: Inventory, reason: str, now: str) -> Inventory:
    """The inventory when the whole driver has stopped answering."""
    return replace(before, gpus=tuple(_sick(gpu, reason, now) for gpu in before.gpus))


def _lost(before: Inventory, reasons: dict[str, str], now: str) -> Iterator[GPU]:
    for gpu in before.gpus:
        reason = reasons.get(f"gpus[{gpu.index}]")
        if reason is not None:
            yield _sick(gpu, reason, now)


def _sick(gpu: GPU, reason: str, now: str) -> GPU:
    if not gpu.health.healthy:
        return gpu
    return replace(gpu, health=Health(healthy=False, reason=reason, since=now))


def _marked(gpu: GPU, mark: Mark) -> GPU:
    if mark.gpu_instance is None or not gpu.mig:
        return replace(gpu, health=mark.health) if gpu.health.healthy else gpu
    return replace(
        gpu,
        mig=tuple(
            replace(mig, health=mark.health) if mig.health.healthy and mark.hits(mig) else mig for mig in gpu.mig
        ),
    )


def _words(text: str) -> Iterator[str]:
    return (word.strip().lower() for word in text.split(","))


def _numbers(words: Iterable[str]) -> frozenset[int]:
    return frozenset(int(word) for word in words if word.isascii() and word.isdecimal())
