"""Limits of namespaces on memory and compute of GPUs. Checked by admission and by `fitting`, kept by the scheduler's books.

Kubernetes would add up what is written in the containers, which is meant for each GPU; here it is counted for all GPUs.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, NamedTuple

from gpushare.domain.amounts import AmountError, parse_whole
from gpushare.domain.manifests import Manifest
from gpushare.placement.settings import RequestSettings

_PREFIX: Final = "limits."


class Charge(NamedTuple):
    """Memory in MiB and percent of compute of all GPUs of a pod together."""

    memory_mib: int = 0
    cores: int = 0


FREE: Final = Charge()


class Quota(NamedTuple):
    """What a namespace may use; None: any amount."""

    memory_mib: int | None = None
    cores: int | None = None

    def less(self, used: Charge) -> Quota:
        """What is left of it; below 0 where more is used, as after the quota was lowered."""
        return Quota(
            None if self.memory_mib is None else self.memory_mib - used.memory_mib,
            None if self.cores is None else self.cores - used.cores,
        )

    def takes(self, charge: Charge) -> bool:
        """Whether that much is left. What asks for none of a resource is not held up by its quota."""
        return not (
            (self.memory_mib is not None and charge.memory_mib > max(self.memory_mib, 0))
            or (self.cores is not None and charge.cores > max(self.cores, 0))
        )


UNLIMITED: Final = Quota()


def read_quota(quotas: Iterable[Manifest], settings: RequestSettings) -> Quota:
    """What the ResourceQuota objects of one namespace allow together: of several, each holds."""
    memory: list[int] = []
    cores: list[int] = []
    for quota in quotas:
        hard = (quota.get("spec") or {}).get("hard") or {}
        for name, limits, factor in (
            (settings.memory, memory, settings.memory_factor),
            (settings.cores, cores, 1),
        ):
            text = hard.get(_PREFIX + name)
            if text is not None:
                limits.append(_read(text) * factor)
    return Quota(min(memory, default=None), min(cores, default=None))


def _read(text: object) -> int:
    """A limit; one that is no whole number allows nothing, rather than everything."""
    try:
        return parse_whole(text)
    except AmountError:
        return 0
