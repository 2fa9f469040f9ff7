"""What is going on in a pod: its containers, as the runtime sees them. Written by the pod's worker, read by `statuses`."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Waiting:
    """Not started, or between two starts."""

    reason: str
    message: str = ""

    def to_json(self) -> dict[str, Any]:
        """The form of `state.waiting`."""
        return {"reason": self.reason, **({"message": self.message} if self.message else {})}


@dataclass(frozen=True, slots=True, kw_only=True)
class Running:
    """Started and not ended. Times are RFC 3339."""

    started_at: str

    def to_json(self) -> dict[str, Any]:
        """The form of `state.running`."""
        return {"startedAt": self.started_at}


@dataclass(frozen=True, slots=True, kw_only=True)
class Terminated:
    """Ended."""

    exit_code: int
    started_at: str
    finished_at: str
    container_id: str = ""
    reason: str = ""
    """Empty: by the exit code."""
    message: str = ""

    def to_json(self) -> dict[str, Any]:
        """The form of `state.terminated`."""
        return {
            "exitCode": self.exit_code,
            "reason": self.reason or ("Completed" if self.exit_code == 0 else "Error"),
            **({"message": self.message} if self.message else {}),
            "startedAt": self.started_at,
            "finishedAt": self.finished_at,
            **({"containerID": self.container_id} if self.container_id else {}),
        }


@dataclass(slots=True, kw_only=True)
class ContainerState:
    """One container of a pod, over all its restarts."""

    name: str
    state: Waiting | Running | Terminated
    last: Terminated | None = None
    """How the run before ended."""
    container_id: str = ""
    restarts: int = 0
    started: bool = False
    """Running, and its startup probe, if any, has succeeded."""
    ready: bool = False

    @property
    def exit_code(self) -> int | None:
        """None while it has not ended."""
        return self.state.exit_code if isinstance(self.state, Terminated) else None


@dataclass(slots=True, kw_only=True)
class PodState:
    """A pod on this node."""

    init: list[ContainerState]
    containers: list[ContainerState]
    start_time: str
    pod_ip: str = ""
    """Empty until its volumes are mounted and its sandbox stands."""
    ended: bool = False
    """Whether no container runs or will be started again."""
    times: dict[str, tuple[str, str]] = field(default_factory=dict)
    """Status and time of the last change, by condition."""

    @property
    def initialized(self) -> bool:
        """Whether every init container has done its work; one with `restartPolicy: Always` has when it has started."""
        return all(container.exit_code == 0 or container.started for container in self.init)
