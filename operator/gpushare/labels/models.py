"""Which model a node's labels are about where it has several."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Protocol, TypeVar


class _HasModel(Protocol):
    @property
    def product(self) -> str: ...


Device = TypeVar("Device", bound=_HasModel)


def prevailing(devices: Sequence[Device]) -> Sequence[Device]:
    """The devices of the model that most are of; of the first one where two have as many. Not empty where `devices` is not."""
    groups: dict[Hashable, list[Device]] = {}
    for device in devices:
        groups.setdefault(device.product, []).append(device)
    return max(groups.values(), key=len)
