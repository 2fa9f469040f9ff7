"""The errors of gpushare, and who acts on each.

    GpuShareError
    ├── ConfigurationError      the user's text is wrong: report it, change nothing, do not retry
    ├── ClusterUnavailable      the API server cannot be reached or is not ready: retry with backoff
    ├── ClusterRefused          the API server says no (forbidden, invalid): a person must act; retry slowly
    ├── Conflict                somebody else changed the object first: read again, decide again, at once
    ├── Expired                 a watch's version is too old: list again
    ├── DeviceError             one GPU cannot be read or used: mark that GPU, go on with the others
    ├── AllocationError         devices cannot be given out as asked: ask for others, or later
    ├── KubeletError            the kubelet's side is broken: serve and register again
    ├── ProgramFailed           a program of the machine is missing, fails or hangs: report it, try again later
    └── UsageError              the command line is wrong: print the text, exit with 2

Doors translate what their library raises into these; nothing behind a door sees a library's own exception.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field


class GpuShareError(Exception):
    """Root of everything that gpushare raises on purpose."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """One thing that is wrong in what a user wrote, said in the user's words."""

    path: str
    """Where: `sharing.timeSlicing.resources[0].replicas`."""
    message: str
    """What is wrong and what to write instead, in one sentence."""
    line: int | None = None
    """Line of the text, counted from 1, where it is known."""
    only_ours: bool = field(default=False, compare=False)
    """NVIDIA's programs take it all the same, and do what its writer may not think."""

    def __str__(self) -> str:
        where = self.path
        if self.line is not None:
            where = f"{where} (line {self.line})" if where else f"line {self.line}"
        return f"{where}: {self.message}" if where else self.message


class ConfigurationError(GpuShareError):
    """A text that cannot be used; carries every problem, not only the first."""

    def __init__(self, problems: Iterable[Problem]) -> None:
        self.problems = tuple(problems)
        super().__init__("; ".join(map(str, self.problems)))


class ClusterUnavailable(GpuShareError):  # noqa: N818 - the state is the name, as in the tree above
    """The API server cannot be reached, or is not ready to answer (connection refused, 429, 5xx)."""


class ClusterRefused(GpuShareError):  # noqa: N818
    """The API server understood and said no: forbidden, invalid, unknown kind."""

    def __init__(self, message: str, *, code: int) -> None:
        super().__init__(message)
        self.code = code
        """HTTP status: 400, 401, 403, 404 (no such kind), 405, 413, 415, 422."""


class Conflict(GpuShareError):  # noqa: N818
    """Somebody else changed the object first, or owns a field of it (409)."""


class Expired(GpuShareError):  # noqa: N818
    """The version that a watch wanted to go on from is no longer known (410)."""


class DeviceError(GpuShareError):
    """One GPU, or the whole driver, cannot be read or used."""


class AllocationError(GpuShareError):
    """Devices cannot be given out, or taken back, as asked; nothing was."""


class KubeletError(GpuShareError):
    """The kubelet cannot be reached, or refuses a registration."""


class ProgramFailed(GpuShareError):  # noqa: N818 - the state is the name
    """A program of the machine is missing, fails or hangs."""

    def __init__(self, message: str, *, hangs: bool = False) -> None:
        super().__init__(message)
        self.hangs = hangs
        """Whether it did not answer in time, rather than say no."""


class UsageError(GpuShareError):
    """The command line or the environment holds what the command cannot take; the process exits with 2."""
