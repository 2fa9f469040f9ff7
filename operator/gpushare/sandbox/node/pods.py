"""The life of one pod on its node: admission, volumes, containers, the end. One worker a pod, as in a kubelet.

Made by the node for each pod that the watch shows; told by it when the pod changes or goes.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterable
from typing import Any

from gpushare.domain import manifests
from gpushare.domain.manifests import Manifest
from gpushare.errors import ClusterRefused, ClusterUnavailable, Conflict, GpuShareError
from gpushare.kube.backoff import Backoff
from gpushare.sandbox.apiserver.objects import times
from gpushare.sandbox.node import access, requests, running, statuses
from gpushare.sandbox.node.containers import ContainerRunner, PodContext
from gpushare.sandbox.node.devices import AllocationRefused
from gpushare.sandbox.node.environment import Surroundings
from gpushare.sandbox.node.logs import Output
from gpushare.sandbox.node.mounting import PodVolumes
from gpushare.sandbox.node.reporting import StatusWriter
from gpushare.sandbox.node.running import Halt
from gpushare.sandbox.node.services import Services

_FORCED_GRACE = 2.0
"""What the programs of a pod get that is gone from the API server already, or whose node ends."""


class LogUnavailable(GpuShareError):  # noqa: N818 - the state is the name
    """There is no log to show; with the HTTP status and the kubelet's words."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = code


class PodWorker:
    """Everything that happens to one pod on this node."""

    def __init__(self, services: Services, pod: Manifest, others: Callable[[], Iterable[Manifest]]) -> None:
        """`others`: the pods that the node holds already."""
        self.uid = str(pod["metadata"]["uid"])
        self.admitted = False
        """Whether the pod takes part of the node's resources now."""
        self._services = services
        self._pod = access.with_api_access(pod) if _has_programs(pod) else pod
        self._others = others
        self._now = times.seconds_text(time.time())
        self._state = statuses.initial(pod, self._now)
        self._rejection: dict[str, Any] | None = None
        self._writer = StatusWriter(services.cluster, pod, self._status, services.log)
        self._context = PodContext(pod=self._pod, publish=self._writer.request)
        self._runners: list[ContainerRunner] = []
        self._stopping = Halt()
        self._going = asyncio.Event()
        self.ended = asyncio.Event()
        """Set once no container runs or will be started again."""
        self._in_api = True
        self.see(pod)

    @property
    def pod(self) -> Manifest:
        """As it was when it came to this node; the specification of a pod does not change."""
        return self._pod

    def see(self, pod: Manifest) -> None:
        """The pod as the watch shows it now."""
        metadata = pod["metadata"]
        if metadata.get("deletionTimestamp"):
            self._end(float(metadata.get("deletionGracePeriodSeconds") or 0))

    def gone(self) -> None:
        """The pod is no longer in the API server."""
        self._in_api = False
        self._end(_FORCED_GRACE)

    def output_of(self, container: str, *, previous: bool) -> Output:
        """The log of a container.

        Raises:
            LogUnavailable: there is none, in the kubelet's words.
        """
        name = self._pod["metadata"]["name"]
        if self._rejection is not None:
            raise LogUnavailable(400, f'container "{container}" in pod "{name}" is not available')
        states = [*self._state.init, *self._state.containers]
        state = next((one for one in states if one.name == container), None)
        if state is None:
            raise LogUnavailable(404, f'container "{container}" not found in pod "{name}"')
        runner = next((one for one in self._runners if one.state is state), None)
        output = (runner.previous if previous else runner.output) if runner is not None else None
        if output is not None:
            return output
        if previous:
            raise LogUnavailable(400, f'previous terminated container "{container}" in pod "{name}" not found')
        reason = getattr(state.state, "reason", "")
        raise LogUnavailable(400, f'container "{container}" in pod "{name}" is waiting to start: {reason}')

    async def run(self) -> None:
        """The whole life, until the pod is gone or the node ends."""
        writer = asyncio.create_task(self._writer.run())
        try:
            # A pod that comes here ending is not started first: it may even be one that has just gone from this node.
            has_ended = (self._pod.get("status") or {}).get("phase") in ("Succeeded", "Failed")
            if not has_ended and not self._stopping.is_asked:
                await self._live()
            self.ended.set()
            await self._going.wait()
            await self._writer.flush()
            await self._delete()
        finally:
            writer.cancel()
            await asyncio.wait({writer})
            self.ended.set()
            self._let_go()
            self._services.folders.remove_pod(self.uid)

    def abandon(self) -> None:
        """The node ends: the programs are told to stop, and the pod stays in the API server as it is."""
        self._writer.mute()
        self._stopping.ask(_FORCED_GRACE)
        for runner in self._runners:
            runner.stop(_FORCED_GRACE)

    async def _live(self) -> None:
        if not await self._admit():
            return
        volumes = await self._mount()
        if volumes is not None:
            renewing = asyncio.create_task(volumes.renew())
            try:
                await self._run_containers()
            finally:
                renewing.cancel()
                await asyncio.wait({renewing})
        self._let_go()
        self._state.ended = True
        self._writer.request()

    async def _admit(self) -> bool:
        """Gives the pod its devices, or refuses it for ever."""
        try:
            self._context.answers = await self._services.plugins.allocate(self._pod)
        except AllocationRefused as refusal:
            self._reject("UnexpectedAdmissionError", f"Allocate failed due to {refusal}, which is unexpected")
            return False
        shortage = requests.find_shortage(
            self._pod,
            self._others(),
            self._services.allocatable(),
            exempt={
                name
                for container, _ in requests.containers_of(self._pod)
                for name in requests.limits_of(container)
                if self._services.plugins.serves(name)
            },
        )
        if shortage is not None:
            self._services.plugins.release(self.uid)
            self._reject(*shortage)
            return False
        self.admitted = True
        self._writer.request()
        return True

    def _reject(self, reason: str, message: str) -> None:
        self._services.recorder.warning(self._pod, reason, message)
        self._rejection = statuses.build_rejection(self._pod, reason, message, self._now)
        self._writer.request()

    async def _mount(self) -> PodVolumes | None:
        """Sets up all volumes, as long as it takes; None when the pod is to end before."""
        spec = self._pod["spec"]
        has_programs = _has_programs(self._pod)
        address = self._services.addresses.next(is_program=has_programs, host_network=bool(spec.get("hostNetwork")))
        around = Surroundings(
            node=self._services.node,
            host_ip=statuses.HOST_IP,
            pod_ip=address,
            api=self._services.api,
            allocatable=self._services.allocatable(),
        )
        volumes = PodVolumes(self._services, self._pod, around, only_check=not has_programs)
        while not self._stopping.is_asked:
            if await volumes.try_mount():
                self._context.around, self._context.mounted = around, volumes.paths
                self._state.pod_ip = address
                return volumes
            await self._stopping.wait(self._services.pace.retry)
        return None

    async def _run_containers(self) -> None:
        """Init containers one after another, then all containers at once, until the last of them has ended for good."""
        async with asyncio.TaskGroup() as group:
            sidecars = []
            spec = self._pod["spec"]
            for container, state in zip(spec.get("initContainers") or (), self._state.init, strict=True):
                runner = self._runner(container, state, init=True)
                if container.get("restartPolicy") == "Always":
                    sidecars.append(runner)
                    group.create_task(runner.run())
                    await runner.started.wait()
                    continue
                await runner.run()
                if state.exit_code != 0:
                    break
            else:
                runners = [
                    self._runner(*pair, init=False)
                    for pair in zip(spec["containers"], self._state.containers, strict=True)
                ]
                await asyncio.gather(*(runner.run() for runner in runners))
            for sidecar in sidecars:
                sidecar.stop(self._grace())

    def _runner(self, container: dict[str, Any], state: Any, *, init: bool) -> ContainerRunner:
        runner = ContainerRunner(self._services, self._context, container, state, init=init)
        self._runners.append(runner)
        if self._stopping.is_asked:
            runner.stop(_FORCED_GRACE)
        return runner

    def _grace(self) -> float:
        grace = self._pod["spec"].get("terminationGracePeriodSeconds")
        return 30.0 if grace is None else float(grace)

    def _end(self, grace: float) -> None:
        """Ends all containers. A second call can only make it faster: a forced deletion after a patient one."""
        for runner in self._runners:
            if not self._stopping.is_asked:
                runner.kill(f"Stopping container {runner.state.name}", grace)
            runner.stop(grace)
        self._stopping.ask(grace)
        self._going.set()

    def _status(self) -> dict[str, Any]:
        return self._rejection or statuses.build_status(self._pod, self._state, times.seconds_text(time.time()))

    async def _delete(self) -> None:
        """Lets go of the pod for good: only then does it vanish from the API server."""
        metadata, backoff = self._pod["metadata"], Backoff()
        while self._in_api:
            try:
                await self._services.cluster.delete(
                    manifests.POD, metadata["name"], metadata["namespace"], uid=self.uid, grace_seconds=0
                )
            except (ClusterRefused, ClusterUnavailable, Conflict) as error:
                self._services.log.warning(
                    "cannot delete pod", extra={"pod": self._context.full_name, "reason": str(error)}
                )
                await asyncio.sleep(backoff.next())
            else:
                return

    def _let_go(self) -> None:
        """Frees what the pod takes of the node."""
        self.admitted = False
        self._services.plugins.release(self.uid)


def _has_programs(pod: Manifest) -> bool:
    return any(running.is_ours(container) for container, _ in requests.containers_of(pod))
