"""Whether a running container is started, ready and alive, by its probes. Runs beside one run of a program of ours."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, Protocol

from gpushare.sandbox.node.probing import PROBES, Prober
from gpushare.sandbox.node.states import ContainerState


class Owner(Protocol):
    """Whom the probes tell: the container's runner."""

    def changed(self) -> None:
        """The container has become started, ready or unready."""
        ...

    def complain(self, message: str) -> None:
        """A try has failed."""
        ...

    def restart(self, message: str) -> None:
        """The container is beyond hope."""
        ...


class Health:
    """The probes of one run of one container."""

    def __init__(
        self, container: dict[str, Any], pod_ip: str, state: ContainerState, owner: Owner, *, first_pause: float
    ) -> None:
        """Writes into `state`, then tells `owner`. `first_pause`: see `Pace.probe`."""
        self._container = container
        self._pod_ip = pod_ip
        self._state = state
        self._owner = owner
        self._first_pause = first_pause

    async def run(self) -> None:
        """Asks until cancelled, the startup probe before the others."""
        if self._container.get(PROBES["startup"]):
            await self._probe("startup", self._started)
        async with asyncio.TaskGroup() as group:
            for kind, on_result in (("readiness", self._ready), ("liveness", self._alive)):
                if self._container.get(PROBES[kind]):
                    group.create_task(self._probe(kind, on_result))

    async def _probe(self, kind: str, on_result: Callable[[bool], None]) -> None:
        prober = Prober(kind, self._container[PROBES[kind]], self._container, self._pod_ip)
        await prober.run(self._first_pause, on_result, self._owner.complain)

    def _started(self, is_good: bool) -> None:  # noqa: FBT001 - a callback, like the two below
        if not is_good:
            self._owner.restart(f"Container {self._state.name} failed startup probe, will be restarted")
            return
        self._state.started = True
        self._state.ready = not self._container.get(PROBES["readiness"])
        self._owner.changed()

    def _ready(self, is_good: bool) -> None:  # noqa: FBT001
        if self._state.ready != is_good:
            self._state.ready = is_good
            self._owner.changed()

    def _alive(self, is_good: bool) -> None:  # noqa: FBT001
        if not is_good:
            self._owner.restart(f"Container {self._state.name} failed liveness probe, will be restarted")
