"""One container of a pod over all its runs: starts it, restarts it with growing pauses, asks its probes, keeps its output.

Made and run by the pod's worker.
"""

from __future__ import annotations

import asyncio
import secrets
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from gpushare.domain.manifests import Manifest
from gpushare.errors import GpuShareError
from gpushare.sandbox.apiserver.objects import times
from gpushare.sandbox.node import cdi, environment, running, transcripts, voices
from gpushare.sandbox.node.cdi import DevicesUnknown, Edits
from gpushare.sandbox.node.environment import ConfigMissing, Surroundings
from gpushare.sandbox.node.health import Health
from gpushare.sandbox.node.logs import Output
from gpushare.sandbox.node.running import Halt
from gpushare.sandbox.node.services import Services
from gpushare.sandbox.node.sources import References
from gpushare.sandbox.node.states import ContainerState, Running, Terminated, Waiting
from gpushare.sandbox.node.volumes import MountFailed
from gpushare.sharing.responses import ContainerAnswer

_START_FAILED = 128
_RESTART_GRACE = 30.0


class StartFailed(GpuShareError):  # noqa: N818 - the state is the name
    """The container was made and could not be started."""


@dataclass(slots=True, kw_only=True)
class PodContext:
    """What the containers of one pod share. The worker fills it in as the pod comes to life."""

    pod: Manifest
    publish: Callable[[], None]
    """Has the pod's status written."""
    around: Surroundings | None = None
    mounted: dict[str, Path] = field(default_factory=dict)
    answers: dict[str, ContainerAnswer] = field(default_factory=dict)
    """From the device plugins, by container."""

    @property
    def full_name(self) -> str:
        """As a kubelet's messages name a pod: `name_namespace(uid)`."""
        metadata = self.pod["metadata"]
        return f"{metadata['name']}_{metadata['namespace']}({metadata['uid']})"


class ContainerRunner:
    """Runs one container until it has ended for good or is told to stop."""

    def __init__(
        self, services: Services, context: PodContext, container: dict[str, Any], state: ContainerState, *, init: bool
    ) -> None:
        self.container = container
        self.state = state
        self.output: Output | None = None
        """Of the run that is going on, or of the last one."""
        self.previous: Output | None = None
        """Of the run before."""
        self.started = asyncio.Event()
        """Set with the first start: what a sidecar makes the next container wait for."""
        self._services = services
        self._context = context
        self._init = init
        self._about = voices.about_container(context.pod, state.name, init=init)
        self._root = services.folders.container_root(next(services.numbers))
        self._edits = Edits()
        self._halt = Halt()
        self._stopping = Halt()

    async def run(self) -> None:
        """All runs, one after another, as the restart policy demands."""
        pause = 0.0
        try:
            while not self._stopping.is_asked:
                self._halt = Halt()
                begun = time.monotonic()
                await self._run_once()
                if self._stopping.is_asked or not self._restarts():
                    return
                if time.monotonic() - begun >= self._services.pace.back_off_forgotten:
                    pause = 0.0
                # The first restart comes at once, as with a real kubelet.
                if pause and await self._back_off(pause):
                    return
                pause = min(max(self._services.pace.back_off, pause * 2), self._services.pace.back_off_most)
                self.state.restarts += 1
        finally:
            self.started.set()  # nobody shall wait for a sidecar that never came up
            running.remove_root(self._root)

    def stop(self, grace: float) -> None:
        """Ends the container for good, within `grace` seconds."""
        self._stopping.ask(grace)
        self._halt.ask(grace)

    def kill(self, message: str, grace: float) -> None:
        """Says that a running container is stopped, and ends its run."""
        if isinstance(self.state.state, Running):
            self._services.recorder.normal(self._about, "Killing", message)
        self._halt.ask(grace)

    def _restarts(self) -> bool:
        policy = self.container.get("restartPolicy") or self._context.pod["spec"].get("restartPolicy", "Always")
        if self._init and self.container.get("restartPolicy") != "Always":
            return self.state.exit_code != 0 and policy != "Never"
        return policy == "Always" or (policy == "OnFailure" and self.state.exit_code != 0)

    async def _back_off(self, pause: float) -> bool:
        """Waits before the next restart; whether the container is to stop instead."""
        name, pod = self.state.name, self._context.full_name
        assert isinstance(self.state.state, Terminated)
        self.state.last = self.state.state
        message = f"back-off {_duration(pause)} restarting failed container={name} pod={pod}"
        self.state.state = Waiting(reason="CrashLoopBackOff", message=message)
        self._context.publish()
        self._services.recorder.warning(
            self._about, "BackOff", f"Back-off restarting failed container {name} in pod {pod}"
        )
        return await self._stopping.wait(pause)

    async def _run_once(self) -> None:
        environ = await self._environ()
        if environ is None or self._stopping.is_asked:
            return
        command, args = environment.build_words(self.container, environ)
        self._pull()
        if isinstance(self.state.state, Terminated):
            self.state.last = self.state.state
        self.state.container_id = f"containerd://{secrets.token_hex(32)}"
        self.previous, self.output = self.output, Output()
        started = times.seconds_text(time.time())
        try:
            self._services.recorder.normal(self._about, "Created", "Container created")
            code = await self._execute(environ, command, args)
            reason = message = ""
        except (StartFailed, MountFailed) as failure:
            code, reason, message = _START_FAILED, "StartError", str(failure)
            self._services.recorder.warning(self._about, "Failed", f"Error: {failure}")
        finally:
            self.output.end()
        self.state.started = False
        # A finished init container counts as ready, any other that has ended does not.
        self.state.ready = self._init and code == 0
        self.state.state = Terminated(
            exit_code=code,
            reason=reason,
            message=message,
            started_at=started,
            finished_at=times.seconds_text(time.time()),
            container_id=self.state.container_id,
        )
        self._context.publish()

    async def _execute(self, environ: dict[str, str], command: tuple[str, ...], args: tuple[str, ...]) -> int:
        if running.is_ours(self.container):
            return await self._execute_program(environ, running.words_of(command, args))
        words = (*command, *args)
        answer = self._context.answers.get(self.state.name, ContainerAnswer())
        assert self.output is not None
        for line in transcripts.build_lines(self.container["image"], words, environ, answer, self._edits):
            self.output.write(line)
        self._begin(ready=True)
        pod, pace = self._context.pod, self._services.pace
        seconds = running.seconds_of(pod, self.container, words, init=self._init, run=pace.run)
        return await running.seem_to_run(answer, self.container["image"], words, seconds, self._halt)

    async def _execute_program(self, environ: dict[str, str], words: tuple[str, ...]) -> int:
        program = self._services.programs.get(words[0] if words else "")
        if program is None:
            known = ", ".join(sorted(self._services.programs))
            wanted = words[0] if words else ""
            raise StartFailed(f'exec: "{wanted}": the sandbox has no such program in this image; it has {known}')
        assert self.output is not None
        running.prepare_root(self._services, self._root, self.container, self._context.mounted)
        name = f"{self._context.pod['metadata']['name']}.{self.state.name}"
        invocation = running.build_invocation(self._services, self._root, name, words, environ, self.output)
        self._begin(ready=False)
        assert self._context.around is not None
        pod_ip, pause = self._context.around.pod_ip, self._services.pace.probe
        health = asyncio.create_task(Health(self.container, pod_ip, self.state, self, first_pause=pause).run())
        try:
            return await running.run_program(program, invocation, self._halt, self.output)
        finally:
            health.cancel()
            await asyncio.wait({health})

    def changed(self) -> None:
        """See `health.Owner`."""
        self._context.publish()

    def complain(self, message: str) -> None:
        """See `health.Owner`."""
        self._services.recorder.warning(self._about, "Unhealthy", message)

    def restart(self, message: str) -> None:
        """See `health.Owner`."""
        grace = self._context.pod["spec"].get("terminationGracePeriodSeconds")
        self.kill(message, float(_RESTART_GRACE if grace is None else grace))

    def _begin(self, *, ready: bool) -> None:
        probes = self.container if not ready else {}
        self.state.state = Running(started_at=times.seconds_text(time.time()))
        self.state.started = not probes.get("startupProbe")
        self.state.ready = self.state.started and not probes.get("readinessProbe")
        self._services.recorder.normal(self._about, "Started", "Container started")
        self._context.publish()
        self.started.set()

    async def _environ(self) -> dict[str, str] | None:
        """The environment, once everything that it refers to is there; None when told to stop before."""
        while True:
            try:
                return await self._read_environ()
            except ConfigMissing as missing:
                self._wait_with("CreateContainerConfigError", missing)
            except DevicesUnknown as unknown:
                self._wait_with("CreateContainerError", unknown)
            except GpuShareError as error:
                self._services.log.warning(
                    "cannot start container", extra={"pod": self._context.full_name, "reason": str(error)}
                )
            if await self._stopping.wait(self._services.pace.retry):
                return None

    def _wait_with(self, reason: str, error: GpuShareError) -> None:
        self.state.state = Waiting(reason=reason, message=str(error))
        self._services.recorder.warning(self._about, "Failed", f"Error: {error}")
        self._context.publish()

    async def _read_environ(self) -> dict[str, str]:
        around = self._context.around
        assert around is not None
        references = References(self._services.cluster, self._context.pod["metadata"]["namespace"])
        around = environment.with_contents(
            around,
            {name: await references.config_map(name) for name in sorted(environment.config_maps_of(self.container))},
            {name: await references.secret(name) for name in sorted(environment.secrets_of(self.container))},
        )
        answer = self._context.answers.get(self.state.name, ContainerAnswer())
        self._edits = cdi.resolve(self._services.folders.root, cdi.names_of(answer))
        return environment.build_environ(self._context.pod, self.container, around, answer.envs)

    def _pull(self) -> None:
        """Every image is on every node; only who wants it pulled each time sees it pulled."""
        image, record = self.container.get("image", ""), self._services.recorder.normal
        if self.container.get("imagePullPolicy") == "Always":
            record(self._about, "Pulling", f'Pulling image "{image}"')
            spent = "1ms (1ms including waiting)"
            record(self._about, "Pulled", f'Successfully pulled image "{image}" in {spent}. Image size: 0 bytes.')
        else:
            message = f'Container image "{image}" already present on machine and can be accessed by the pod'
            record(self._about, "Pulled", message)


def _duration(seconds: float) -> str:
    """As Go prints a duration: `10s`, `2m40s`, `5m0s`."""
    minutes, rest = divmod(seconds, 60)
    return f"{int(minutes)}m{rest:g}s" if minutes else f"{rest:g}s"
