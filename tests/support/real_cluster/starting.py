"""Starts clusters in folders of their own, and removes them. Called by tests, benchmarks and `make cluster`."""

from __future__ import annotations

import contextlib
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from support.real_cluster import programs
from support.real_cluster.cluster import RealCluster
from support.real_cluster.gpu_node import GpuNode


@contextlib.contextmanager
def control_plane() -> Iterator[RealCluster]:
    """A control plane without a node."""
    with _cluster() as cluster:
        cluster.start()
        yield cluster


@contextlib.contextmanager
def gpu_node(**kubelet_settings: Any) -> Iterator[GpuNode]:
    """A node with four GPUs, on which nothing is installed yet. `kubelet_settings`: of a KubeletConfiguration."""
    with _cluster() as cluster:
        node = GpuNode(cluster)
        cluster.start()
        cluster.start_node(**kubelet_settings)
        yield node


@contextlib.contextmanager
def _cluster() -> Iterator[RealCluster]:
    # A short path: that of a unix socket may have no more than 107 characters.
    state = Path(tempfile.mkdtemp(prefix="gpushare-", dir="/tmp"))
    cluster = RealCluster(state, programs.build())
    try:
        yield cluster
    finally:
        cluster.remove()
