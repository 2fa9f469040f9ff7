"""The sandbox as a whole: starts every part, knows when all is ready, stops every part. Used by the command line and tests.

async with Sandbox(Options()) as sandbox:
    await sandbox.ready()
    ... kubectl --kubeconfig {sandbox.kubeconfig} ...
"""

from __future__ import annotations

import asyncio
import contextlib
import gc
import logging
import os
import shutil
import tempfile
from collections.abc import Coroutine, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import yaml

from gpushare import names
from gpushare.domain import manifests
from gpushare.domain.manifests import Manifest
from gpushare.errors import GpuShareError
from gpushare.kube import credentials, watching
from gpushare.kube.cluster import Cluster, EventType
from gpushare.kube.credentials import Credentials
from gpushare.kube.lean import LeanCluster
from gpushare.kube.rest import USER_AGENT
from gpushare.nvml.simulated import SimulatedNvml
from gpushare.plan import wording
from gpushare.sandbox import attaching, installing, scenario, scheduling, workloads
from gpushare.sandbox.apiserver.server import ApiServer, Settings
from gpushare.sandbox.node import disks
from gpushare.sandbox.node.fleet import NodeFleet
from gpushare.sandbox.node.nodes import Site
from gpushare.sandbox.node.specs import Endpoint, NodeSpec
from gpushare.sandbox.programs import build_programs
from gpushare.sandbox.scheduling import Profile
from gpushare.serving import closing

LOGGER = "gpushare.sandbox"
_STOP_SECONDS = 10.0
_SHORT = 12
"""Characters that the name of a folder for temporary files may have; on some systems it is much longer."""
_SHORT_FOLDER = "/tmp"  # noqa: S108 - a new folder with a random name is made in it
_SHOWN = 5
"""Nodes that the greeting names."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """How one sandbox is started."""

    scenario: Path | None = None
    """None: the nodes of the walk-through, or as many as `nodes` says."""
    nodes: int | None = None
    port: int = 0
    """Of the API server; 0: any free one."""
    write_kubeconfig: Path | None = None
    """Written as well, when all is ready."""
    attach_to: Path | None = None
    """Kubeconfig of a real API server that gets the nodes; None: start one."""
    has_operator: bool = True
    """False: no operator, nor its kinds. Whoever starts the sandbox installs them, and then does not wait for `ready`."""


class Sandbox:
    """A running sandbox; an asynchronous context manager."""

    def __init__(self, options: Options) -> None:
        """Raises `ConfigurationError` where the scenario cannot be used."""
        self._options = options
        self.scenario = scenario.load(options.scenario, nodes=options.nodes)
        self.hardware = {
            node.spec.name: SimulatedNvml.from_mapping(node.hardware, seed=node.spec.name)
            for node in self.scenario.nodes
        }
        """The driver of each node, by the node's name; feed it events, or take GPUs away."""
        self._log = logging.getLogger(LOGGER)
        self._stack = AsyncExitStack()
        self._stop = asyncio.Event()
        self._jobs: list[asyncio.Task[None]] = []
        self._folder = _make_folder()
        self.kubeconfig = options.attach_to or self._folder / "kubeconfig"
        self.server: ApiServer | None = None
        """None where a real API server is used."""
        self.fleet: NodeFleet | None = None
        self._cluster: Cluster | None = None
        self.waiting_for = "nodes to register"
        """What is not there yet, for people who wait for `ready`."""
        self._attached: list[str] = []
        """Nodes that were put into a cluster of somebody else."""

    @property
    def cluster(self) -> Cluster:
        """The administrator's access, for tests; people use `kubeconfig`."""
        assert self._cluster is not None
        return self._cluster

    async def __aenter__(self) -> Self:
        """Starts everything. Raises OSError when the port is taken, `GpuShareError` where an attached cluster refuses."""
        self._stack.callback(shutil.rmtree, self._folder, ignore_errors=True)
        try:
            await self._start()
        except BaseException:
            await closing.finish(self._stop_all())
            raise
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Ends everything, and leaves no file and no process behind."""
        await closing.finish(self._stop_all())

    async def _start(self) -> None:
        # What start-up allocates lives as long as the process: the collector need not look at it again and again.
        gc.freeze()
        specs = [node.spec for node in self.scenario.nodes]
        if self._options.attach_to is not None:
            access = credentials.from_kubeconfig(self._options.attach_to)
            self._cluster = self._connect(access)
            await attaching.check(self._cluster, (spec.name for spec in specs))
            self._attached = [spec.name for spec in specs]
            specs = list(map(attaching.mark, specs))
        else:
            access = await self._serve()
            self._cluster = self._connect(access)
        self.fleet = self._build_fleet(access, specs)
        await asyncio.to_thread(self._install_drivers, self.fleet)
        if self.server is not None:
            if self._options.has_operator:
                await installing.install_definitions(self._cluster)
            controllers = self._connect(access, "kube-controller-manager", "system:kube-controller-manager")
            scheduler = self._connect(access, "kube-scheduler", "system:kube-scheduler")
            self._run("workloads", workloads.run(controllers, self._log, self._stop))
            profiles = installing.read_profiles() if self._options.has_operator else (Profile(),)
            self._run("scheduling", scheduling.run(scheduler, self._log, self._stop, profiles))
        self._run("nodes", self.fleet.run(self._stop))
        if self.server is not None and self._options.has_operator:
            await installing.install_operator(self._cluster)
            await installing.install_scheduler(self._cluster)

    async def _serve(self) -> Credentials:
        self.server = await ApiServer.start(Settings(port=self._options.port, log=self._log))
        self._stack.push_async_callback(self.server.stop)
        text = yaml.safe_dump(self.server.kubeconfig(namespace=""), sort_keys=False)
        self.kubeconfig.touch(mode=0o600)
        self.kubeconfig.write_text(text, encoding="utf-8")
        return credentials.from_kubeconfig(self.kubeconfig)

    def _connect(self, access: Credentials, program: str = USER_AGENT, user: str = "", *groups: str) -> Cluster:
        """A client under the name of a program; on a server of our own with no more rights than its user has."""
        if self.server is not None and user:
            access = replace(access, token=self.server.token(user, groups))
        cluster = LeanCluster(access, user_agent=program)
        self._stack.push_async_callback(cluster.close)
        return cluster

    def _build_fleet(self, access: Credentials, specs: Sequence[NodeSpec]) -> NodeFleet:
        site = Site(
            # One user for all kubelets, since all of them share the connections.
            cluster=self._connect(access, "kubelet", "system:node:sandbox", "system:nodes"),
            api=Endpoint.from_url(access.server),
            programs=build_programs(self.hardware),
            log=self._log,
        )
        return NodeFleet(specs, self._folder, site)

    def _install_drivers(self, fleet: NodeFleet) -> None:
        for node in fleet.nodes.values():
            disks.install_driver(node.root, self.hardware[node.name])

    def _run(self, name: str, job: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(job, name=name)
        task.add_done_callback(self._ended)
        self._jobs.append(task)

    def _ended(self, task: asyncio.Task[None]) -> None:
        if not task.cancelled() and (error := task.exception()) is not None:
            self._log.critical("a part of the sandbox broke", exc_info=error, extra={"part": task.get_name()})
            self._stop.set()

    async def _stop_all(self) -> None:
        self._stop.set()
        if self._jobs:
            _, late = await asyncio.wait(self._jobs, timeout=_STOP_SECONDS)
            for task in late:
                task.cancel()
            await asyncio.gather(*late, return_exceptions=True)
        try:
            # After the fleet has ended, or it would register them again.
            if self._attached:
                await attaching.remove(self.cluster, self._attached)
        finally:
            await self._stack.aclose()

    async def ready(self, stop: asyncio.Event | None = None) -> bool:
        """Waits until the policy is ready and every GPU node shows its GPUs; False when `stop` comes first.

        Raises:
            GpuShareError: a part of the sandbox broke.
        """
        waiting = asyncio.create_task(self._settled())
        ends = [asyncio.create_task(event.wait()) for event in (self._stop, stop) if event is not None]
        try:
            await asyncio.wait([waiting, *ends], return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in (waiting, *ends):
                task.cancel()
            await asyncio.gather(waiting, *ends, return_exceptions=True)
        if self._stop.is_set():
            raise GpuShareError("a part of the sandbox broke; run it with --verbose to see which and why")
        if waiting.cancelled():
            return False
        waiting.result()
        if (copy := self._options.write_kubeconfig) is not None:
            self._publish(copy)
        return True

    def _publish(self, path: Path) -> None:
        # Whoever waits for the file must find it whole.
        partial = path.with_name(f".{path.name}.{os.getpid()}")
        partial.touch(mode=0o600)
        partial.write_text(self.kubeconfig.read_text(encoding="utf-8"), encoding="utf-8")
        partial.replace(path)
        self._stack.callback(path.unlink, missing_ok=True)

    async def _settled(self) -> None:
        if self.server is None:
            assert self.fleet is not None
            await self.fleet.ready()  # what a real cluster makes of them is its own affair
            return
        lacking = {node.spec.name for node in self.scenario.nodes if node.hardware.get("gpus")}
        self.waiting_for = "GPUs of nodes"
        async with contextlib.aclosing(watching.follow(self.cluster, manifests.NODE, log=self._log)) as changes:
            while lacking:
                change = await anext(changes)
                seen = change.items if isinstance(change, watching.Synced) else (change.event.object,)
                lacking -= {node["metadata"]["name"] for node in seen if _shows_gpus(node)}
                self.waiting_for = f"GPUs of {', '.join(sorted(lacking)[:_SHOWN])}"
        self.waiting_for = f"ClusterPolicy {installing.POLICY} to be ready"
        follow = watching.follow(self.cluster, manifests.CLUSTER_POLICY, log=self._log)
        async with contextlib.aclosing(follow) as changes:
            async for change in changes:
                seen = change.items if isinstance(change, watching.Synced) else (change.event.object,)
                gone = isinstance(change, watching.Changed) and change.event.type is EventType.DELETED
                if not gone and any((policy.get("status") or {}).get("state") == "ready" for policy in seen):
                    return

    def greeting(self) -> str:
        """What a person needs to know first."""
        nodes = [
            f"{node.spec.name} ({wording.counted(count, 'GPU')})" if (count := _gpus_of(node)) else node.spec.name
            for node in self.scenario.nodes
        ]
        more = f", and {len(nodes) - _SHOWN} more" if len(nodes) > _SHOWN else ""
        return (
            f"The cluster is ready: {', '.join(nodes[:_SHOWN])}{more}.\n\n"
            f"    export KUBECONFIG={self.kubeconfig}\n"
            f"    kubectl get nodes,gpunodes\n"
            f"    kubectl get clusterpolicy {installing.POLICY}\n"
            f"    kubectl get events -n {installing.NAMESPACE} --sort-by='.lastTimestamp'\n"
        )


def _make_folder() -> Path:
    """An empty folder with a short name, since paths of unix sockets lie below it and end at 107 bytes."""
    usual = tempfile.gettempdir()
    return Path(tempfile.mkdtemp(prefix="gs-", dir=usual if len(usual) <= _SHORT else _SHORT_FOLDER))


def _gpus_of(node: scenario.ScenarioNode) -> int:
    return sum(gpu.get("count", 1) for gpu in node.hardware.get("gpus") or ())


def _shows_gpus(node: Manifest) -> bool:
    allocatable = (node.get("status") or {}).get("allocatable") or {}
    labels = node["metadata"].get("labels") or {}
    return any(key.startswith(names.PREFIX) for key in allocatable) and names.LABEL_PRODUCT in labels
