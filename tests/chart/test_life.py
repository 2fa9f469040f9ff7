"""A release from its installation to its end, by the real helm, on a cluster that works."""

from __future__ import annotations

import copy
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from gpushare import names
from gpushare.domain import manifests
from gpushare.domain.manifests import Manifest
from gpushare.errors import ClusterRefused
from gpushare.sandbox.apiserver.access.authorization import Authorizer, Decision
from gpushare.sandbox.apiserver.requests import Target, User
from support import helm, releases
from support.releases import Person
from support.snapshots import time_slicing

CLEANUP = f"system:serviceaccount:{helm.NAMESPACE}:{names.CONTROLLER}-cleanup"
OF_EVERY_NAMESPACE = {"default", "kube-root-ca.crt"}


Right = tuple[str, str, str]
"""Group, resource and verb."""


@pytest.fixture
async def person() -> AsyncIterator[Person]:
    async with releases.cluster(nodes=2) as person:
        yield person


@pytest.fixture
def rights_used(monkeypatch: pytest.MonkeyPatch) -> set[Right]:
    """What the Job of an uninstall has asked for so far."""
    used: set[Right] = set()
    decide = Authorizer.decide

    def decided(self: Authorizer, user: User, target: Target) -> Decision:
        decision = decide(self, user, target)
        if user.name == CLEANUP and target.is_resource:
            assert decision.allowed, target.path
            used.add((target.group, target.qualified_resource, target.verb))
        return decision

    monkeypatch.setattr(Authorizer, "decide", decided)
    return used


@pytest.mark.timeout(600)
async def test_from_install_to_uninstall(person: Person, rights_used: set[Right], tmp_path: Path) -> None:
    """It shares GPUs; another chart version restarts nothing; and in the end it is as if it had never been there."""
    await person.cluster.create(SERVICE_MONITORS)
    labels_before, objects_before = await labels_of(person), await objects_of(person)
    values = tmp_path / "values.json"
    values.write_text(
        json.dumps(
            {
                "clusterPolicy": {"create": True, "spec": SHARING},
                "configWebhook": {"enabled": True},
                "dashboard": {"enabled": True},
                "fractions": {"enabled": True, "kubeScheduler": {"enabled": False}},
            }
        )
    )
    options = ("--values", values, "--wait", "--timeout", "60s")
    # Before the release, since `--wait` also waits for its policy, which is not ready without what it names.
    await person.cluster.create(releases.manifest_of(manifests.NAMESPACE, helm.NAMESPACE))
    await person.cluster.create(releases.manifest_of(manifests.CONFIG_MAP, "sharing", data={"four": time_slicing(4)}))
    await person.run_helm("install", helm.RELEASE, helm.CHART, *options)

    async def shared() -> bool:
        return await person.shares() == {"16"}

    await person.until(shared)
    pods = await person.pods()
    assert len(pods) == 4

    definition = await forget_field(person, "psa")
    certificate = await person.cluster.get(manifests.SECRET, names.CONFIG_WEBHOOK, helm.NAMESPACE)
    await person.run_helm("upgrade", helm.RELEASE, helm.copy_chart(tmp_path, version="0.2.0"), *options)
    assert "0.2.0" in await person.run_helm("list")
    assert await person.pods() == pods
    assert await person.shares() == {"16"}
    assert (await definition_of(person))["spec"] == definition["spec"], "the CRD of before"
    kept = await person.cluster.get(manifests.SECRET, names.CONFIG_WEBHOOK, helm.NAMESPACE)
    assert certificate is not None
    assert kept is not None
    assert kept["data"] == certificate["data"]

    await person.run_helm("uninstall", helm.RELEASE, "--wait", "--timeout", "60s")

    async def pods_are_gone() -> bool:
        return not await person.pods()

    await person.until(pods_are_gone)
    assert await labels_of(person) == labels_before
    assert await objects_of(person) - objects_before == {
        "ConfigMap gpu-operator/sharing",
        "CustomResourceDefinition clusterpolicies.nvidia.com",
        "CustomResourceDefinition gpunodes.gpushare.dev",
    }

    granted = {
        (group, resource, verb)
        for manifest in helm.render()
        if helm.is_hook(manifest, "pre-delete")
        for rule in manifest.get("rules", ())
        for group in rule["apiGroups"]
        for resource in rule["resources"]
        for verb in rule["verbs"]
    }
    assert rights_used == granted, "the Job has a right that it does not need"


SHARING = {"devicePlugin": {"config": {"name": "sharing", "default": "four"}}, "psa": {"enabled": True}}
SERVICE_MONITORS = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "servicemonitors.monitoring.coreos.com"},
    "spec": {
        "group": "monitoring.coreos.com",
        "scope": "Namespaced",
        "names": {"plural": "servicemonitors", "kind": "ServiceMonitor"},
        "versions": [
            {
                "name": "v1",
                "served": True,
                "storage": True,
                "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}},
            }
        ],
    },
}
"""The kind of the Prometheus operator."""


async def definition_of(person: Person) -> Manifest:
    found = await person.cluster.get(manifests.CUSTOM_RESOURCE_DEFINITION, "clusterpolicies.nvidia.com")
    assert found is not None
    return found


async def forget_field(person: Person, name: str) -> Manifest:
    """Makes the CRD of policies one of an older version, which did not know a field. Returns what it was."""
    definition = await definition_of(person)
    older = copy.deepcopy(definition)
    del older["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"][name]
    await person.cluster.replace(older)
    return definition


async def labels_of(person: Person) -> dict[str, Any]:
    return {node["metadata"]["name"]: node["metadata"]["labels"] for node in await person.all(manifests.NODE)}


async def objects_of(person: Person) -> set[str]:
    """Every object but Events, which run out, and what every namespace has."""
    found = []
    for kind in set(manifests.KINDS) - {manifests.EVENT, manifests.NAMESPACE}:
        try:
            found += [manifests.key_of(manifest) for manifest in await person.all(kind)]
        except ClusterRefused as error:
            if error.code not in {
                404,
                405,
            }:  # a kind of ours before the chart brought it, and reviews, which nobody keeps
                raise
    return {str(key) for key in found if key.name not in OF_EVERY_NAMESPACE}
