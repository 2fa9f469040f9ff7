"""CRDs on their way: what the API server cannot do yet is tried again, what it forbids is not."""

from __future__ import annotations

import logging

import pytest

from gpushare.controller import definitions
from gpushare.domain import manifests
from gpushare.errors import ClusterRefused, ClusterUnavailable
from gpushare.render import templates
from support.memory_cluster import MemoryCluster

LOG = logging.getLogger("crds")
NAMES = sorted(each["metadata"]["name"] for each in templates.read_definitions())


async def test_not_now() -> None:
    """A server that restarts is asked again, and every CRD gets there."""
    cluster = MemoryCluster()
    cluster.refusals["create CustomResourceDefinition"] = ClusterUnavailable("starting")

    await definitions.upgrade(cluster, LOG)

    found = await cluster.list(manifests.CUSTOM_RESOURCE_DEFINITION)
    assert sorted(each["metadata"]["name"] for each in found.items) == NAMES


async def test_never() -> None:
    """What is forbidden stays forbidden; whoever waits for the process is told at once."""
    cluster = MemoryCluster()
    cluster.refusals["create CustomResourceDefinition"] = ClusterRefused("forbidden", code=403)

    with pytest.raises(ClusterRefused, match="forbidden"):
        await definitions.upgrade(cluster, LOG)
