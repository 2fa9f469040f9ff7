"""The controller without one of its rights: it says which one, and goes on with everything else."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from gpushare import names
from gpushare.domain import manifests
from gpushare.plan import permissions
from gpushare.plan.permissions import Right
from gpushare.render.templates import render
from support.clusters import NAMESPACE, GpuCluster
from support.snapshots import time_slicing

ROLES = [item for item in render("controller", {"namespace": NAMESPACE, "image": "x"}) if "rules" in item]
RIGHTS = sorted({right for role in ROLES for right in permissions.rights_of(role)})
SILENT = {
    *(Right("nvidia.com", "clusterpolicies", verb) for verb in ("list", "watch")),
    Right("nvidia.com", "clusterpolicies/status", "patch"),
    *(Right("coordination.k8s.io", "leases", verb) for verb in ("get", "create", "update")),
}
"""Without these no policy can be found or written, so that the log has to do."""


@pytest.fixture
async def cluster(tmp_path: Path) -> AsyncIterator[GpuCluster]:
    async with GpuCluster.running(tmp_path) as cluster:
        await cluster.add_node("gpu01")
        await cluster.apply_config("sharing", any=time_slicing(4))
        await cluster.apply_policy(devicePlugin={"config": {"name": "sharing", "default": "any"}})
        yield cluster


@pytest.mark.parametrize("right", RIGHTS, ids=lambda right: f"{right.verb}-{right.object}")
async def test_one_right_is_missing(cluster: GpuCluster, right: Right, caplog: pytest.LogCaptureFixture) -> None:
    """A controller without one right does not end, and names it: on the policy, or in its log."""
    caplog.set_level(logging.INFO)
    await without(cluster, right)

    async with cluster.controller("--metrics-port", "0"):
        if right not in SILENT:
            told = await cluster.until_condition("Permitted", "False", saying=right.object)
            assert f"may not {right.verb} {right.object}; " in told["message"]
        else:
            await cluster.until("the log tells", lambda: said(caplog, right))
            await cluster.until("readiness tells", lambda: is_not_ready(caplog, right))


async def said(caplog: pytest.LogCaptureFixture, right: Right) -> bool:
    return any(
        right.resource in text and right.verb in text
        for record in caplog.records
        for text in [str(getattr(record, "reason", "")) + str(getattr(record, "missing", ""))]
    )


async def is_not_ready(caplog: pytest.LogCaptureFixture, right: Right) -> bool:
    port = next(record.port for record in caplog.records if record.getMessage() == "listening")
    code, text = await fetch(port, "/readyz")
    _, figures = await fetch(port, "/metrics")
    return code == 503 and right.object in text and "gpushare_controller_rights_missing 1.0" in figures


async def fetch(port: int, path: str) -> tuple[int, str]:
    """An HTTP GET of this machine."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(f"GET {path} HTTP/1.1\r\nHost: test\r\nConnection: close\r\n\r\n".encode())
    answer = (await reader.read()).decode()
    writer.close()
    await writer.wait_closed()
    return int(answer.split()[1]), answer


async def test_right_is_given_back(cluster: GpuCluster) -> None:
    """What a missing right held up is done once it is there, and the policy no longer speaks of it."""
    patch_nodes = Right("", "nodes", "patch")
    await without(cluster, patch_nodes)
    async with cluster.controller():
        await cluster.until_condition("Permitted", "False", saying="may not patch nodes; ")
        await cluster.until_condition("Error", "True", saying="cannot patch resource")
        await cluster.until_config("gpu01", content=time_slicing(4))

        for role in ROLES:
            await cluster.admin.apply(role, manager="installer", force=True)

        await cluster.until_condition("Permitted", "True")
        await cluster.until_condition("Error", "True", saying="not ready")
        node = await cluster.get(manifests.NODE, "gpu01")
        assert node["metadata"]["labels"][names.LABEL_PRESENT] == "true"


async def without(cluster: GpuCluster, right: Right) -> None:
    """Takes one verb on one resource out of the roles of the controller."""
    for role in ROLES:
        rules = [
            {**rule, "resources": [resource], "apiGroups": [group], "verbs": verbs}
            for rule in role["rules"]
            for group in rule["apiGroups"]
            for resource in rule["resources"]
            if (verbs := [verb for verb in rule["verbs"] if Right(group, resource, verb) != right])
        ]
        await cluster.admin.apply({**role, "rules": rules}, manager="installer", force=True)
