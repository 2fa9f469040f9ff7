"""The clusters of this folder, and whether this machine can run them."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.real_cluster import preflight, starting
from support.real_cluster.cluster import RealCluster
from support.real_cluster.given import GivenCluster
from support.real_cluster.gpu_node import GpuNode

STATUS_SECONDS = 1
"""How often the kubelet tells the API server about the node; 10 unless it is told otherwise."""
_HERE = Path(__file__).parent
_TEST_SECONDS = 1800
"""The first test waits until all programs are built; no other takes longer than a few minutes."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if item.path.is_relative_to(_HERE):
            item.add_marker(pytest.mark.timeout(_TEST_SECONDS))


@pytest.fixture(scope="module")
def control_plane() -> Iterator[RealCluster]:
    """A control plane without a node, each module its own."""
    _check_machine(has_node=False)
    with starting.control_plane() as cluster:
        yield cluster


@pytest.fixture(scope="module")
def any_cluster(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> RealCluster | GivenCluster:
    """The cluster of KUBECONFIG, or else a control plane."""
    if path := os.environ.get("KUBECONFIG"):
        cluster = GivenCluster(Path(path), tmp_path_factory.mktemp("given"))
        cluster.check()
        return cluster
    found: RealCluster = request.getfixturevalue("control_plane")
    return found


@pytest.fixture(scope="session")
def able_machine() -> None:
    """A machine that can run a node."""
    _check_machine(has_node=True)


@pytest.fixture(scope="session")
def installed_node(able_machine: None) -> Iterator[GpuNode]:
    """A node with four GPUs, on which this project is installed; one for all tests."""
    with starting.gpu_node(nodeStatusUpdateFrequency=f"{STATUS_SECONDS}s") as node:
        node.install()
        yield node


@pytest.fixture
def node(installed_node: GpuNode) -> Iterator[GpuNode]:
    """The node, each of its GPUs shared by four, without anybody's pods."""
    installed_node.share(4)
    yield installed_node
    installed_node.clear()


def _check_machine(*, has_node: bool) -> None:
    if refusal := preflight.refuse(has_node=has_node):
        (pytest.skip if preflight.may_skip() else pytest.fail)(refusal)
