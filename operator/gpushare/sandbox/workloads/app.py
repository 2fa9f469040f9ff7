"""Starts all workload controllers on one set of watches. Called by the sandbox."""

from __future__ import annotations

import asyncio
import logging

from gpushare.kube.cluster import Cluster
from gpushare.sandbox.loops import looping
from gpushare.sandbox.loops.caches import Caches
from gpushare.sandbox.workloads.daemonsets.controller import DaemonSets
from gpushare.sandbox.workloads.deployments.controller import Deployments
from gpushare.sandbox.workloads.jobs.controller import Jobs
from gpushare.sandbox.workloads.nodes.collecting import Leftovers
from gpushare.sandbox.workloads.nodes.controller import Nodes
from gpushare.sandbox.workloads.nodes.evicting import Evictions
from gpushare.sandbox.workloads.replicasets.controller import ReplicaSets

_CONTROLLERS = (DaemonSets, Deployments, ReplicaSets, Jobs, Nodes, Evictions, Leftovers)


async def run(cluster: Cluster, log: logging.Logger, stop: asyncio.Event) -> None:
    """Keeps all workloads as they should be until `stop` is set."""
    caches = Caches(cluster, log)
    controllers = [controller(cluster, caches, log) for controller in _CONTROLLERS]
    jobs = [job for controller in controllers for job in controller.jobs()]
    await looping.run_until(stop, caches.run(), *jobs)
