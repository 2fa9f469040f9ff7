"""Which reports of GPUs count, and what kind of trouble they are. Pure; the agent's device watch asks."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final, Self

from gpushare.agent.options import HealthChecks
from gpushare.domain.troubles import Cause
from gpushare.nvml.port import Event, EventKind

APPLICATION_XIDS: Final = frozenset({13, 31, 43, 45, 68, 109})
"""Errors that programs make; ignored unless they are asked for. Same list as NVIDIA's device plugin."""
_ALL: Final = "all"
_XIDS: Final = "xids"


@dataclass(frozen=True, slots=True, kw_only=True)
class Checks:
    """What makes a GPU sick, as DP_DISABLE_HEALTHCHECKS and DP_ENABLE_HEALTHCHECKS say."""

    ignored: frozenset[int] = APPLICATION_XIDS
    ignores_all: bool = False
    """All XIDs."""
    counted: frozenset[int] = frozenset()
    """Beats the other two."""
    counts_all: bool = False
    trusts_silence: bool = False
    """Whether a GPU that cannot be read, or a driver that does not answer, is no trouble."""

    @classmethod
    def parse(cls, checks: HealthChecks) -> Self:
        """Reads the two variables. What is no number there is skipped, as by NVIDIA's device plugin."""
        disabled, enabled = frozenset(_words(checks.disabled)), frozenset(_words(checks.enabled))
        return cls(
            ignored=APPLICATION_XIDS | _numbers(disabled),
            ignores_all=bool(disabled & {_ALL, _XIDS}),
            counted=_numbers(enabled),
            counts_all=_ALL in enabled,
            trusts_silence=_ALL in disabled and _ALL not in enabled,
        )

    @property
    def hears_nothing(self) -> bool:
        """Whether no report counts."""
        return self.ignores_all and not self.counted and not self.counts_all

    def counts(self, event: Event) -> bool:
        """Whether this report makes a GPU sick; ECC reports by themselves do not."""
        if event.kind is not EventKind.XID:
            return False
        if self.counts_all or event.xid in self.counted:
            return True
        return not self.ignores_all and event.xid not in self.ignored


def cause_of(event: Event) -> Cause:
    """Whether a program made the error, or the GPU."""
    return Cause.APPLICATION if event.xid in APPLICATION_XIDS else Cause.HARDWARE


def _words(text: str) -> Iterator[str]:
    return (word.strip().lower() for word in text.split(","))


def _numbers(words: Iterable[str]) -> frozenset[int]:
    return frozenset(int(word) for word in words if word.isascii() and word.isdecimal())
