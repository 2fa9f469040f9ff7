"""What is wrong with a device, and what may mend it. The agent keeps these over its restarts.

A `devices.Health` is what everybody else sees: whether a device may be given out, why not, since when.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Cause(StrEnum):
    """The kind of a trouble: it decides what ends it."""

    HARDWARE = "hardware"
    """An error of the GPU itself: over only when the driver says so."""
    APPLICATION = "application"
    """An error that a program makes: over when none has been reported for a while."""
    LOST = "lost"
    """The GPU has fallen off the bus: over when it has answered for a while, and every other trouble of it with this one."""
    UNREADABLE = "unreadable"
    """The GPU, or the whole driver, does not answer: over when it has answered for a while."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Trouble:
    """One thing that is wrong with one GPU, or with one of its MIG instances."""

    gpu: str
    """UUID of the physical GPU."""
    mig: str = ""
    """UUID of the MIG instance; empty: the whole GPU, with all instances that it has."""
    cause: Cause
    reason: str
    """For people, such as `XID 79`."""
    since: str
    """RFC 3339 time of the first report."""
    driver_load: str = ""
    """Which loading of the driver it was reported under; empty: not known."""
    relapses: int = 0
    """How often it had come back shortly after it was over."""
