"""Share ids: the names under which the kubelet knows one share of a GPU. Used wherever ids cross the gRPC border."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Self

SEPARATOR: Final = "::"
UNIT_SEPARATOR: Final = "-_-"
"""Before the number of a unit of memory, as in the ids of Alibaba's GPU sharing (`GPU-<uuid>-_-3`)."""


@dataclass(frozen=True, slots=True)
class ShareId:
    """The n-th share of one device; without a number, the whole device.

    Same text form as NVIDIA's device plugin (`GPU-<uuid>::3`), since exporters split it on the separator. Unlike
    `pools.Share`, which also knows its health and place, this is only the name.
    """

    device: str
    number: int | None = None
    separator: str = SEPARATOR
    """What stands before the number."""

    @classmethod
    def parse(cls, text: str) -> Self:
        """Reads `<device>`, `<device>::<number>` or `<device>-_-<number>`.

        Raises:
            ValueError: what follows the separator is no number.
        """
        device, separator, number = _partition(text)
        if not separator:
            return cls(device)
        if not (number.isascii() and number.isdecimal()):
            raise ValueError(f"{text!r}: expected a number after {separator!r}")
        return cls(device, int(number), separator)

    def __str__(self) -> str:
        return self.device if self.number is None else f"{self.device}{self.separator}{self.number}"


def device_of(text: str) -> str:
    """The device in the text of an id, whatever follows it."""
    return _partition(text)[0]


def _partition(text: str) -> tuple[str, str, str]:
    return text.partition(SEPARATOR if SEPARATOR in text else UNIT_SEPARATOR)
