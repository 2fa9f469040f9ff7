"""What the controller keeps of what it sees."""

import copy

import pytest

from gpushare.controller.snapshotting import WATCHED, Store, sighting_of
from gpushare.domain import manifests
from gpushare.domain.manifests import Kind, ObjectKey
from gpushare.domain.selectors import Selector
from gpushare.plan.snapshot import Settings

NAMESPACE = "gpu-operator"
BY_KIND = {watched.kind: watched for watched in WATCHED}


def build(kind: Kind, name: str, version: int = 1, **fields: object) -> dict:
    metadata = {"name": name, "uid": f"uid-{name}", "resourceVersion": str(version)}
    if kind.namespaced:
        metadata["namespace"] = NAMESPACE
    metadata |= fields.pop("metadata", {})
    return {"apiVersion": kind.api_version, "kind": kind.kind, "metadata": metadata, **fields}


def gpu_node(version: int = 1, **status: object) -> dict:
    config = {"reason": "none", "revision": "", "content": ""}
    return build(manifests.GPU_NODE, "gpu01", version, spec={"config": config}, status=status)


def daemonset(version: int = 1, **template: object) -> dict:
    return build(
        manifests.DAEMON_SET, "nvidia-device-plugin-daemonset", version, spec={"template": template}, status={}
    )


@pytest.fixture
def store() -> Store:
    return Store(Settings(namespace=NAMESPACE))


def see(store: Store, manifest: dict, *, gone: bool = False) -> bool:
    return store.see(
        sighting_of(BY_KIND[manifests.kind_of(manifest)], manifest, Settings(namespace=NAMESPACE)), gone=gone
    )


def test_allocations_change_nothing(store: Store) -> None:
    """Pods come and go all the time; what they hold decides nothing here, what the agent applied does."""
    offered = {"name": "nvidia.com/gpu", "strategy": "none", "replicas": 1, "total": 4, "healthy": 4}
    assert see(store, gpu_node(1, appliedRevision="a", resources=[{**offered, "allocated": 1}]))
    assert not see(store, gpu_node(1, appliedRevision="a", resources=[{**offered, "allocated": 2}]))
    assert see(store, gpu_node(1, appliedRevision="a"))
    assert not see(store, gpu_node(2, appliedRevision="a", allocations=[{"index": 0, "containers": []}]))
    assert see(store, gpu_node(3, appliedRevision="b"))


def test_heartbeat(store: Store) -> None:
    """A Node that only tells that it lives starts no pass, and its newest version is known all the same."""
    see(store, build(manifests.NODE, "gpu01", 1))
    assert not see(store, build(manifests.NODE, "gpu01", 2, status={"conditions": [{"type": "Ready"}]}))

    [node] = store.snapshot().nodes
    assert node.resource_version == "2"


def test_drift(store: Store) -> None:
    """Somebody's edit of one of our objects asks for a pass; its mere progress asks for one where it counts."""
    see(store, daemonset(1, image="ours"))
    assert not see(store, daemonset(2, image="ours"))
    assert see(store, daemonset(3, image="theirs"))

    key = ObjectKey(manifests.DAEMON_SET, "nvidia-device-plugin-daemonset", NAMESPACE)
    assert store.live[key]["spec"] == {"template": {"image": "theirs"}}
    assert "status" not in store.live[key]


def test_objects_of_others(store: Store) -> None:
    """Of what others run, only what has a name of ours or our label is kept."""
    other = build(manifests.SERVICE_ACCOUNT, "default")
    ours = build(
        manifests.SERVICE_ACCOUNT, "old", metadata={"labels": {"app.kubernetes.io/managed-by": "gpu-sharing-operator"}}
    )
    named = build(manifests.SERVICE_ACCOUNT, "nvidia-device-plugin")

    assert not see(store, other)
    assert see(store, ours)
    assert see(store, named)
    assert {item.key.name for item in store.snapshot().objects} == {"old", "nvidia-device-plugin"}


def test_gone(store: Store) -> None:
    """A deleted object leaves nothing behind."""
    see(store, daemonset(1))
    assert see(store, daemonset(2), gone=True)
    assert not store.live
    assert store.snapshot().objects == ()
    assert not see(store, daemonset(2), gone=True)


def test_answer_overtakes_the_watch(store: Store) -> None:
    """What we wrote is known from the answer; the watch then tells of what was before, which counts no more."""
    store.see_written(gpu_node(5, appliedRevision="new"))

    assert not see(store, gpu_node(4, appliedRevision="old"))
    assert not see(store, gpu_node(5, appliedRevision="new"))
    assert store.snapshot().gpu_nodes[0].status.applied_revision == "new"


def test_ghosts(store: Store) -> None:
    """What went between two watches is dropped; what was seen after the list was made stays."""
    see(store, build(manifests.NODE, "stays"))
    see(store, build(manifests.NODE, "ghost"))
    since = store.sightings
    see(store, build(manifests.NODE, "new"))

    assert store.drop_others(manifests.NODE, frozenset({"stays"}), since)
    assert not store.drop_others(manifests.NODE, frozenset({"stays"}), since)
    assert {node.name for node in store.snapshot().nodes} == {"stays", "new"}


async def test_wait_for(store: Store) -> None:
    """Objects that exist and that no watch has told of are named."""
    see(store, build(manifests.NODE, "one"))

    assert await store.wait_for(manifests.NODE, frozenset({"one"}), seconds=0) == frozenset()
    assert await store.wait_for(manifests.NODE, frozenset({"one", "two"}), seconds=0.01) == {"two"}


def test_pod_on_its_way_out(store: Store) -> None:
    """An agent's pod that is being deleted is no agent, though the pod exists."""
    pod = build(manifests.POD, "agent", 1, spec={"nodeName": "gpu01"}, status={})
    assert see(store, pod)

    leaving = copy.deepcopy(pod)
    leaving["metadata"] |= {"deletionTimestamp": "2026-01-01T00:00:00Z", "resourceVersion": "2"}

    assert see(store, leaving)
    assert store.snapshot().agent_pods == ()


def test_canaries() -> None:
    """Which nodes go first is told by any label, of which no other is kept."""
    settings = Settings(namespace=NAMESPACE, canary=Selector.parse("pool=canary"))
    store = Store(settings)
    for name, labels in (("gpu01", {"pool": "canary"}), ("gpu02", {"pool": "prod"})):
        store.see(
            sighting_of(BY_KIND[manifests.NODE], build(manifests.NODE, name, metadata={"labels": labels}), settings)
        )

    assert {node.name: (node.canary, node.labels) for node in store.snapshot().nodes} == {
        "gpu01": (True, {}), "gpu02": (False, {}),
    }  # fmt: skip


def test_capacity(store: Store) -> None:
    """What device plugins offer asks for a pass when it changes, and other amounts never do."""
    capacity = {"cpu": "8", "nvidia.com/gpu": "4", "memory": "1Ki", "hugepages-2Mi": "0"}
    see(store, build(manifests.NODE, "gpu01", 1, status={"capacity": capacity, "allocatable": capacity}))
    other = {**capacity, "cpu": "7"}
    assert not see(store, build(manifests.NODE, "gpu01", 2, status={"capacity": capacity, "allocatable": other}))

    [node] = store.snapshot().nodes
    assert node.resources == {"nvidia.com/gpu": (4, 4)}
    less = {**capacity, "nvidia.com/gpu": "3"}
    assert see(store, build(manifests.NODE, "gpu01", 3, status={"capacity": capacity, "allocatable": less}))


def test_runtime_classes(store: Store) -> None:
    """Those of others are told apart from ours, which say nothing about the nodes."""
    ours = {"labels": {"app.kubernetes.io/managed-by": "gpu-sharing-operator"}}
    see(store, build(manifests.RUNTIME_CLASS, "nvidia"))
    see(store, build(manifests.RUNTIME_CLASS, "nvidia-cdi", metadata=ours))

    assert store.snapshot().runtime_classes == {"nvidia"}
