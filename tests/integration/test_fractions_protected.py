"""The annotation that says what a pod was given: nobody but the scheduler of fractions may write it, wherever it stands."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest

from gpushare import names
from gpushare.domain import manifests
from gpushare.errors import ClusterRefused
from gpushare.kube.credentials import Credentials
from gpushare.kube.lean import LeanCluster
from gpushare.render.templates import render
from gpushare.sandbox.apiserver.server import ApiServer, Settings
from support.bound_pods import decision, grant

SCHEDULER = f"system:serviceaccount:gpu-operator:{names.SCHEDULER}"
ALL = ("system:masters", "system:authenticated")
FORGED = decision("uid", {"main": (grant(),)}).to_annotation()


@pytest.fixture
async def server() -> AsyncIterator[ApiServer]:
    server = await ApiServer.start(Settings())
    try:
        yield server
    finally:
        await server.stop()


@pytest.fixture
async def person(server: ApiServer) -> AsyncIterator[LeanCluster]:
    """Somebody who may do everything, as an administrator, with the policy in place."""
    cluster = connect(server, "administrator")
    for item in render("scheduler", {"namespace": "gpu-operator", "image": "x", "url": "https://x"}):
        if item["kind"].startswith("ValidatingAdmission"):
            await cluster.create(item)
    await cluster.create({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "gpu01"}})
    yield cluster
    await cluster.close()


def connect(server: ApiServer, user: str) -> LeanCluster:
    return LeanCluster(Credentials(server=server.url, ca=server.ca_pem, token=server.token(user, ALL)))


def pod(**annotations: str) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "a", "namespace": "default", "annotations": annotations},
        "spec": {"containers": [{"name": "main", "image": "nginx:1.29"}]},
    }


def binding(annotations: dict[str, str]) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Binding",
        "metadata": {"name": "a", "namespace": "default", "annotations": annotations},
        "target": {"kind": "Node", "name": "gpu01"},
    }


def refused() -> Any:
    return pytest.raises(ClusterRefused, match=r"annotation gpushare.dev/decision is written by the scheduler")


async def test_a_pod_that_brings_its_own(person: LeanCluster) -> None:
    """Refused as it is created, in words that say what to leave out."""
    with refused():
        await person.create(pod(**{names.ANNOTATION_DECISION: FORGED}))


async def test_a_binding_that_brings_its_own(person: LeanCluster) -> None:
    """It would write the annotation as the scheduler's does; without it, anybody who may bind does."""
    await person.create(pod())
    with refused():
        await person.create(binding({names.ANNOTATION_DECISION: FORGED}), subresource="binding", name="a")

    await person.create(binding({}), subresource="binding", name="a")


async def test_changed_afterwards(server: ApiServer, person: LeanCluster) -> None:
    """Neither changed nor removed, also not with the status; everything else of the pod may change."""
    scheduler = connect(server, SCHEDULER)
    try:
        await person.create(pod())
        await scheduler.create(binding({names.ANNOTATION_DECISION: FORGED}), subresource="binding", name="a")
    finally:
        await scheduler.close()
    for value in ("{}", None):
        with refused():
            await annotate(person, {names.ANNOTATION_DECISION: value})
    with refused():
        await annotate(person, {names.ANNOTATION_DECISION: "{}"}, subresource="status")

    await annotate(person, {"note": "x"})
    found = await person.get(manifests.POD, "a", "default")
    assert found is not None
    assert found["metadata"]["annotations"] == {"note": "x", names.ANNOTATION_DECISION: FORGED}


async def annotate(cluster: LeanCluster, annotations: dict[str, str | None], *, subresource: str = "") -> None:
    body = {"metadata": {"annotations": annotations}}
    await cluster.patch(manifests.POD, "a", body, "default", subresource=subresource)
