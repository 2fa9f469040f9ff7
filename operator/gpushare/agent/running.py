"""The agent at work: its tasks, what wakes what, and what is reported. Made and run by `app`."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Awaitable, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

from gpushare.agent import allocations, warming
from gpushare.agent.answering import Answering
from gpushare.agent.deciding import Assignment, Decider, Decision
from gpushare.agent.devices import DeviceWatch
from gpushare.agent.health import Checks
from gpushare.agent.holding import HolderWatch
from gpushare.agent.keeping import keep
from gpushare.agent.memory import Memory
from gpushare.agent.mps_readiness import MpsReadiness
from gpushare.agent.options import KUBELET_SOCKET, AgentOptions
from gpushare.agent.reconciling import Reconciler
from gpushare.agent.serving_pools import Kubelet, ServingPools
from gpushare.agent.telling import Parts, Telling
from gpushare.domain.devices import Inventory
from gpushare.host.files import HostFiles
from gpushare.host.mps import MpsMachine
from gpushare.host.state import StateFile
from gpushare.nvml.port import Nvml
from gpushare.serving import closing

if TYPE_CHECKING:
    # Everything about reporting is loaded where it is used: after the first list, which the kubelet is waiting for.
    from gpushare.agent.describing import Describer
    from gpushare.agent.fractions.running import Fractions
    from gpushare.domain.manifests import Manifest
    from gpushare.kube.cluster import Cluster

STATE_FILE = "/var/lib/gpushare/state.json"
POD_RESOURCES_SOCKET = "/var/lib/kubelet/pod-resources/kubelet.sock"
FIRST_ASSIGNMENT_SECONDS = 0.3
"""How long a start waits for the API server while it has a configuration to start from."""
UNKNOWN_ASSIGNMENT_SECONDS = 5.0
"""The same while it has none: better late than with whole devices that turn into shares a moment later."""
FIRST_DEVICES_SECONDS = 10.0
"""How long it waits for a driver that is waking up its GPUs."""
WARM_UP_SECONDS = 2.0
"""After the first list: whoever starts many agents at once has other things to do just then."""
THREADS = 4


class Agent:
    """One node's agent. `run` it once."""

    def __init__(
        self,
        options: AgentOptions,
        files: HostFiles,
        nvml: Nvml,
        mps: MpsMachine,
        cluster: Cluster | None,
        log: logging.Logger,
    ) -> None:
        """Without a cluster there is no GPUNode, and the configuration is that of the file, or the defaults."""
        self._options = options
        self._log = log
        self._cluster = cluster
        self._loop = asyncio.get_running_loop()
        self._files = files
        self._executor = ThreadPoolExecutor(THREADS, thread_name_prefix="agent")
        self._wake = asyncio.Event()
        self._assigned = asyncio.Event()
        self._served = asyncio.Event()
        """Set after the first pass."""
        self._assignment: Assignment | None = None
        self._memory = Memory(StateFile(files.path(STATE_FILE), log), self._executor)
        self._devices = DeviceWatch(
            nvml, files, Checks.parse(options.health_checks), self._memory, log, on_change=self._wake.set
        )
        self._holders = HolderWatch(
            self._files.path(POD_RESOURCES_SOCKET),
            self._executor,
            on_read=self._try_again_if_held_back,
            on_change=self._see_holders,
        )
        self._mps = MpsReadiness(mps, log, on_change=self._wake.set)
        self._answering = Answering(self._holders.see_allocate)
        self._pools = ServingPools(self._kubelet(), self._answering, self._executor, log, on_change=self._see_standings)
        self._describer: Describer | None = None
        """None until it is needed: most nodes have no CDI."""
        self._fractions: Fractions | None = None
        """None until it is needed: most nodes give out whole GPUs or equal shares."""
        self._reconciler = Reconciler(
            Decider(options, self._files),
            self._serve,
            self._memory,
            self._executor,
            read_holders=self._holders.read_known,
        )
        self._telling = Telling(
            Parts(
                devices=self._devices,
                holders=self._holders,
                pools=self._pools,
                mps=self._mps,
                reconciler=self._reconciler,
            ),
            log,
        )

    async def run(self, stop: asyncio.Event) -> None:
        """Runs until `stop` is set; then ends its servers and leaves no socket behind."""
        tasks = [asyncio.create_task(keep(work, self._log)) for work in self._works()]
        try:
            await stop.wait()
        finally:
            await closing.finish(self._end(tasks))

    async def _end(self, tasks: Sequence[asyncio.Task[None]]) -> None:
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)
        if self._fractions is not None:
            await self._fractions.end()
        await asyncio.gather(self._pools.stop(), self._devices.close(), self._memory.close())
        # Without waiting: a call to a kubelet that hangs may take some seconds yet.
        self._executor.shutdown(wait=False)
        if self._cluster is not None:
            await self._cluster.close()

    def _kubelet(self) -> Kubelet:
        socket = self._options.kubelet_socket
        return Kubelet(
            # Always this one, also where the kubelet's socket is elsewhere, as NVIDIA's plugin does.
            plugins=self._files.path(KUBELET_SOCKET).parent,
            socket=self._files.path(socket) if socket else None,
        )

    def _works(self) -> list[Callable[[], Awaitable[None]]]:
        works: list[Callable[[], Awaitable[None]]] = [
            self._watch_devices,
            self._mps.run,
            self._pass_on_change,
            self._watch_holders,
            self._watch_host,
            self._warm_up,
        ]
        if self._options.config_file:
            works.append(self._follow_file)
        elif self._cluster is None:
            self._assign(Assignment())
        if self._cluster is not None:
            works += self._cluster_works(self._cluster)
        if self._options.metrics_port:
            works.append(self._listen)
        return works

    async def _pass_on_change(self) -> None:
        await self._first_answers()
        while True:
            self._wake.clear()
            assignment, before = self._assignment, self._reconciler.decision
            decision = await self._reconciler.reconcile(assignment, self._devices.inventory)
            self._served.set()
            self._count_ghosts()
            self._answering.topology = self._devices.linking.topology
            self._telling.tell(assignment, before, decision)
            await self._wake.wait()

    async def _serve(self, decision: Decision, inventory: Inventory | None) -> Decision:
        # In this order: what is offered is described, and no share of a new list is answered in the old way.
        if decision.responses.uses_cdi or self._describer is not None:
            describe = self._need_describer().describe
            decision = await self._loop.run_in_executor(self._executor, describe, decision, inventory)
        if self._cluster is not None and (decision.fractions is not None or self._fractions is not None):
            fractions = self._need_fractions(self._cluster)
            decision = await fractions.apply(decision, inventory)
            self._answering.fractions = fractions.answers
        elif decision.fractions is not None:
            from gpushare.agent.fractions.withholding import NO_CLUSTER, withhold

            decision = withhold(decision, NO_CLUSTER)
        self._answering.options = decision.responses
        await self._pools.apply(await self._mps.offerable(decision.pools))
        return decision

    def _need_describer(self) -> Describer:
        if self._describer is None:
            from gpushare.agent.describing import Describer

            self._describer = Describer(self._options, self._files, self._log)
        return self._describer

    def _need_fractions(self, cluster: Cluster) -> Fractions:
        if self._fractions is None:
            from gpushare.agent.fractions.running import Fractions, Surroundings
            from gpushare.host.hami_core import HamiCore

            around = Surroundings(
                cluster=cluster,
                node=self._options.node_name,
                library=HamiCore(self._files, self._options.hami_core_library),
                holders=self._holders,
                executor=self._executor,
                log=self._log,
            )
            self._fractions = Fractions(
                around, on_change=self._wake.set, on_news=lambda: self._telling.report(urgent=True)
            )
            self._telling.fractions = self._fractions
        return self._fractions

    async def _watch_host(self) -> None:
        await self._served.wait()
        from gpushare.agent.host_watching import HostWatch

        watch = HostWatch(self._files, self._need_describer(), self._holders, self._executor, on_change=self._wake.set)
        await watch.run(lambda: self._reconciler.decision)

    async def _first_answers(self) -> None:
        """Waits for driver and configuration, but not for long: a node must not lose its GPUs to a slow API server."""
        seconds = FIRST_ASSIGNMENT_SECONDS if self._reconciler.has_last_good else UNKNOWN_ASSIGNMENT_SECONDS
        await asyncio.gather(_within(seconds, self._assigned), _within(FIRST_DEVICES_SECONDS, self._devices.answered))

    def _see_standings(self) -> None:
        self._telling.report()

    def _see_holders(self) -> None:
        self._count_ghosts()
        if self._fractions is not None:
            self._fractions.see_holders()
        # Where fractions are given out, a scheduler waits for this news.
        self._telling.report(urgent=self._fractions is not None and self._fractions.answers is not None)

    def _count_ghosts(self) -> None:
        if self._devices.inventory is not None:
            holders, pools = self._holders.holders, self._pools.pools
            self._answering.ghosts = allocations.count_ghosts(holders, pools, self._devices.inventory)

    def _assign(self, assignment: Assignment | None) -> None:
        self._assigned.set()
        if assignment is not None and assignment != self._assignment:
            self._assignment = assignment
            self._wake.set()

    async def _follow_file(self) -> None:
        from gpushare.agent import configuration

        name = self._options.config_file
        await configuration.follow_file(self._files.path(name), self._assign, name=name)

    def _cluster_works(self, cluster: Cluster) -> list[Callable[[], Awaitable[None]]]:
        from gpushare.agent import configuration
        from gpushare.agent.publishing import Publisher
        from gpushare.domain.gpunode import GPUNode

        publisher = self._telling.publisher = Publisher(cluster, self._options.node_name, self._log)

        def see(manifest: Manifest | None) -> None:
            publisher.see(manifest)
            node = GPUNode.from_json(manifest) if manifest is not None else None
            if node is not None:
                self._telling.know_before(node.status)
            if not self._options.config_file:
                # None too: then the start waits no longer, and what is in force stays.
                self._assign(configuration.assignment_of(node) if node is not None else None)

        async def follow() -> None:
            await configuration.follow_node(cluster, self._options.node_name, see, self._log)

        return [follow, publisher.run]

    async def _warm_up(self) -> None:
        """Loads what the first list did not need, before a kubelet or a changed configuration waits for it."""
        await self._served.wait()
        await asyncio.sleep(WARM_UP_SECONDS)
        await self._loop.run_in_executor(self._executor, warming.load)
        await asyncio.Event().wait()

    async def _watch_devices(self) -> None:
        await self._devices.run(self._served)

    async def _watch_holders(self) -> None:
        await self._served.wait()
        await self._holders.run()

    def _try_again_if_held_back(self) -> None:
        if self._reconciler.is_held_back:
            self._wake.set()

    async def _listen(self) -> None:
        await self._served.wait()
        from gpushare.agent.monitoring import Monitoring
        from gpushare.serving.listening import listen

        answer = Monitoring(self._telling.facts).answer
        await listen(answer, self._options.metrics_address, self._options.metrics_port, self._log)


async def _within(seconds: float, event: asyncio.Event) -> None:
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            await event.wait()
