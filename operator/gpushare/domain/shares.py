"""Share ids: the names under which the kubelet knows one share of a GPU. Used wherever ids cross the gRPC border."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

SEPARATOR = "::"


@dataclass(frozen=True, slots=True)
class ShareId:
    """The n-th share of one device; without a number, the whole device.

    Same text form as NVIDIA's device plugin (`GPU-<uuid>::3`), since exporters split it on the separator. Unlike
    `pools.Share`, which also knows its health and place, this is only the name.
    """

    device: str
    number: int | None = None

    @classmethod
    def parse(cls, text: str) -> Self:
        """Reads `<device>` or `<device>::<number>`.

        Raises:
            ValueError: what follows the separator is no number.
        """
        device, separator, number = text.partition(SEPARATOR)
        if not separator:
            return cls(device)
        if not (number.isascii() and number.isdecimal()):
            raise ValueError(f"{text!r}: expected a number after {SEPARATOR!r}")
        return cls(device, int(number))

    def __str__(self) -> str:
        return self.device if self.number is None else f"{self.device}{SEPARATOR}{self.number}"
