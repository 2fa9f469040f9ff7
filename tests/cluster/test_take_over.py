"""What a real API server makes of take-overs and of labels that several write; the embedded one only resembles it."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator

import pytest

from gpushare import names
from gpushare.domain import manifests
from gpushare.domain.manifests import Manifest, ObjectKey
from gpushare.errors import Conflict
from gpushare.kube.applying import Applier
from gpushare.kube.credentials import from_kubeconfig
from gpushare.kube.lean import LeanCluster
from gpushare.plan import reading
from support.nvidia_operator import PROGRAM, NvidiaOperator, daemonset
from support.real_cluster.cluster import RealCluster

NAMESPACE = "taken-over"
POLICY: Manifest = {"apiVersion": "nvidia.com/v1", "kind": "ClusterPolicy", "metadata": {"name": "p", "uid": "1-2-3"}}
DAEMONSET = ObjectKey(manifests.DAEMON_SET, names.DAEMONSET_DEVICE_PLUGIN, NAMESPACE)


@pytest.fixture
async def admin(control_plane: RealCluster) -> AsyncIterator[LeanCluster]:
    cluster = LeanCluster(from_kubeconfig(control_plane.kubeconfig()))
    yield cluster
    await cluster.close()


@pytest.fixture
async def program(control_plane: RealCluster) -> AsyncIterator[LeanCluster]:
    """How NVIDIA's operator presents itself."""
    cluster = LeanCluster(from_kubeconfig(control_plane.kubeconfig()), user_agent=PROGRAM)
    yield cluster
    await cluster.close()


def ours() -> Manifest:
    """A DaemonSet of the same name and selector, with one container of its own."""
    wanted = daemonset(NAMESPACE, POLICY)
    wanted["metadata"]["labels"] = {names.LABEL_MANAGED_BY: names.CONTROLLER}
    wanted["metadata"]["annotations"] = {names.ANNOTATION_HASH: "1"}
    template = wanted["spec"]["template"]
    template["metadata"]["labels"] = wanted["spec"]["selector"]["matchLabels"]
    container = {"name": "nvidia-device-plugin", "image": "ours", "args": ["agent"]}
    template["spec"] = {"containers": [container], "nodeSelector": {names.LABEL_DEPLOY_DEVICE_PLUGIN: "true"}}
    return wanted


async def take_over(applier: Applier, theirs: Manifest) -> Manifest:
    """Tried again, as the next pass does, where the controller of DaemonSets was quicker."""
    while True:
        with contextlib.suppress(Conflict):
            [taken] = await applier.apply([ours()], {DAEMONSET: theirs})
            return taken


async def test_nothing_of_theirs_stays(admin: LeanCluster, program: LeanCluster) -> None:
    """One write more than usual, and the template is what it would be if nobody had been there before."""
    await admin.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}})
    applier = Applier(admin, names.MANAGER_CONTROLLER)
    await applier.apply([ours()], {})
    alone = await admin.get(DAEMONSET.kind, DAEMONSET.name, NAMESPACE)
    await admin.delete(DAEMONSET.kind, DAEMONSET.name, NAMESPACE)
    await NvidiaOperator(program, NAMESPACE).take(POLICY)
    theirs = await admin.get(DAEMONSET.kind, DAEMONSET.name, NAMESPACE)
    assert alone is not None
    assert theirs is not None

    taken = await take_over(applier, theirs)

    assert taken["spec"]["template"] == alone["spec"]["template"]
    assert taken["metadata"]["uid"] == theirs["metadata"]["uid"]
    managers = {entry["manager"] for entry in taken["metadata"]["managedFields"]}
    assert names.MANAGER_NVIDIA_OPERATOR not in managers
    assert await applier.apply([ours()], {DAEMONSET: taken}) == ()


async def test_who_wrote_a_label(admin: LeanCluster, program: LeanCluster) -> None:
    """What we own, what somebody takes from us, and what stays when we want nothing any more."""
    mine, shared = names.LABEL_PRESENT, names.LABEL_DEPLOY_DEVICE_PLUGIN
    node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n1"}}
    await admin.create(node)

    async def apply(labels: dict[str, str], *, force: bool = False) -> Manifest:
        wanted = {**node, "metadata": {"name": "n1", "labels": labels}}
        return await admin.apply(wanted, manager=names.MANAGER_CONTROLLER, force=force)

    async def say(key: str, value: str | None) -> None:
        await program.patch(manifests.NODE, "n1", {"metadata": {"labels": {key: value}}})

    seen = reading.node_of(await apply({mine: "true", shared: "true"}))
    assert seen.owned == {mine, shared}
    await say(shared, "false")
    seen = reading.node_of((await admin.get(manifests.NODE, "n1")) or {})
    assert (seen.owned, seen.writers[shared]) == ({mine}, names.MANAGER_NVIDIA_OPERATOR)
    await say(mine, None)
    seen = reading.node_of((await admin.get(manifests.NODE, "n1")) or {})
    assert seen.owned == frozenset()

    seen = reading.node_of(await apply({shared: "off"}, force=True))
    assert (seen.owned, seen.writers) == ({shared}, {})
    assert shared not in reading.node_of(await apply({})).labels
