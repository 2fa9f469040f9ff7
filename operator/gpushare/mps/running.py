"""The MPS process at work: its tasks, what wakes what, and whether it is ready. Made and run by `app`."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass

from gpushare.agent import configuration
from gpushare.agent.deciding import Assignment, Decider, Decision
from gpushare.agent.keeping import keep
from gpushare.agent.options import AgentOptions
from gpushare.api.sharing import Flags
from gpushare.domain.devices import Inventory
from gpushare.domain.gpunode import CONFIG_APPLIED, GPUNode
from gpushare.domain.manifests import Manifest
from gpushare.host.files import HostFiles
from gpushare.host.mps import ROOT, MpsMachine
from gpushare.host.remembering import ValueFile
from gpushare.host.state import LastGood
from gpushare.host.tailing import FileTail
from gpushare.kube.backoff import Backoff
from gpushare.kube.cluster import Cluster
from gpushare.mps.daemons import Begun, Daemons
from gpushare.mps.devices import DevicePoll
from gpushare.mps.monitoring import Monitoring
from gpushare.mps.options import MpsOptions
from gpushare.nvml.port import Nvml
from gpushare.serving import closing
from gpushare.serving.listening import listen
from gpushare.sharing.mps import MpsDaemon, build_daemons

STATE_FILE = "/var/lib/gpushare/mps.json"


@dataclass(frozen=True, slots=True, kw_only=True)
class Pace:
    """How long the service waits, in seconds."""

    first_answers: float = 10.0
    """For driver and configuration, before it starts with what it remembers."""
    look: float = 10.0
    """Between two looks at daemons that run."""
    retry: float = 1.0
    """After the first failure; doubles with each further one."""
    longest_retry: float = 30.0
    relay: float = 1.0
    """Between two looks into the logs of daemons."""


class MpsService:
    """The MPS control daemons of one node. `run` it once."""

    def __init__(
        self,
        options: MpsOptions,
        files: HostFiles,
        machine: MpsMachine,
        nvml: Nvml,
        log: logging.Logger,
        pace: Pace = Pace(),
    ) -> None:
        self._options = options
        self._pace = pace
        self._log = log
        self._wake = asyncio.Event()
        self._assigned = asyncio.Event()
        self._assignment: Assignment | None = None
        self._in_force: LastGood | None = None
        self._decision: Decision | None = None
        self._passed = False
        """Whether the first pass is over."""
        # What is judged here is what the agent judges, with its code; where the host has the directory is its business.
        flags = Flags(mig_strategy=options.mig_strategy, mps_root=ROOT)
        self._decider = Decider(AgentOptions(flags=flags), files)
        self._files = files
        self._machine = machine
        self._devices = DevicePoll(nvml, files, log, on_change=self._wake.set)
        self._daemons = Daemons(machine, ValueFile(files.path(STATE_FILE), Begun, log), log)

    async def run(self, cluster: Cluster | None, stop: asyncio.Event) -> None:
        """Runs until `stop` is set; then ends the daemons, and gives the GPUs back to everybody."""
        tasks = [asyncio.create_task(keep(work, self._log)) for work in self._works(cluster)]
        try:
            await stop.wait()
        finally:
            await closing.finish(self._end(tasks))

    async def _end(self, tasks: Sequence[asyncio.Task[None]]) -> None:
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)
        await asyncio.gather(self._daemons.end_all(), self._devices.close())

    def why_not_ready(self) -> str:
        """Empty when every daemon that the configuration wants runs; also where it wants none."""
        if self._devices.failure or self._devices.inventory is None:
            return f"driver: {self._devices.failure or 'not asked yet'}"
        if not self._passed:
            return "starting"
        if self._assignment is None and not self._daemons.begun:
            return "no configuration is in force on this node yet"
        return "; ".join(f"{name}: {reason}" for name, reason in sorted(self._daemons.troubles.items()))

    def figures(self) -> Mapping[str, bool]:
        """Whether the daemon of each resource runs."""
        return {name: name in self._daemons.running for name in self._daemons.begun}

    def _works(self, cluster: Cluster | None) -> list[Callable[[], Awaitable[None]]]:
        works: list[Callable[[], Awaitable[None]]] = [self._devices.run, self._pass_on_change, self._relay_logs]
        if self._options.config_file:
            works.append(self._follow_file)
        elif cluster is not None:
            works.append(lambda: configuration.follow_node(cluster, self._options.node_name, self._see, self._log))
        else:
            self._assign(Assignment())
        if self._options.metrics_port:
            works.append(self._listen)
        return works

    async def _follow_file(self) -> None:
        await configuration.follow_file(self._files.path(self._options.config_file), self._assign)

    def _see(self, manifest: Manifest | None) -> None:
        node = GPUNode.from_json(manifest) if manifest is not None else None
        # Only what the agent serves: it may have held back or refused what is assigned, and pods go on with what was.
        if node is not None and is_in_force(node):
            assignment = configuration.assignment_of(node)
            if assignment is not None:
                self._assign(assignment)

    def _assign(self, assignment: Assignment) -> None:
        self._assigned.set()
        if assignment != self._assignment:
            self._assignment = assignment
            self._wake.set()

    async def _relay_logs(self) -> None:
        """What the daemons write, into our own log: it is the first that people look into when a CUDA program fails."""
        tails: dict[str, FileTail] = {}
        while True:
            for name in sorted(self._daemons.running):
                if name not in tails:
                    tails[name] = FileTail(self._machine.log_file(name))
                for line in tails[name].read():
                    self._log.info("MPS daemon says", extra={"resource": name, "line": line})
            await asyncio.sleep(self._pace.relay)

    async def _pass_on_change(self) -> None:
        pace = self._pace
        await asyncio.gather(
            *(_within(pace.first_answers, event) for event in (self._devices.answered, self._assigned))
        )
        backoff = Backoff(first=pace.retry, most=pace.longest_retry)
        while True:
            self._wake.clear()
            if self._devices.inventory is not None:
                await self._pass(self._devices.inventory)
            if not self._daemons.troubles:
                backoff.reset()
            pause = backoff.next() if self._daemons.troubles else pace.look
            if not await _within(pause, self._wake):
                await self._daemons.look()

    async def _pass(self, inventory: Inventory) -> None:
        wanted = await self._wanted(inventory)
        await self._daemons.apply(wanted, {gpu.uuid for gpu in inventory.gpus})
        self._passed = True

    async def _wanted(self, inventory: Inventory) -> Mapping[str, MpsDaemon]:
        # In a thread: the first text loads YAML and pydantic.
        decision = await asyncio.to_thread(self._decider.decide, self._assignment, self._in_force, inventory, ())
        self._tell(decision)
        if decision.in_force is None:
            # Nothing is known of what should be: what an earlier process began is the last that was.
            return dict(self._daemons.begun)
        self._in_force = decision.in_force
        return build_daemons(decision.pools, inventory)

    def _tell(self, decision: Decision) -> None:
        if decision.refusal and (self._decision is None or decision.refusal != self._decision.refusal):
            problems = [str(problem) for problem in decision.refusal]
            self._log.warning("configuration refused: the daemons stay as they are", extra={"problems": problems})
        self._decision = decision

    async def _listen(self) -> None:
        answer = Monitoring(self.why_not_ready, self.figures).answer
        await listen(answer, self._options.metrics_address, self._options.metrics_port, self._log)


async def _within(seconds: float, event: asyncio.Event) -> bool:
    """Waits at most that long; whether the event is set."""
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            await event.wait()
    return event.is_set()


def is_in_force(node: GPUNode) -> bool:
    """Whether the agent says that it serves what the node is assigned now."""
    applied = next((condition for condition in node.status.conditions if condition.type == CONFIG_APPLIED), None)
    return (
        applied is not None
        and applied.status == "True"
        and applied.observed_generation is not None
        and applied.observed_generation >= node.generation
    )
