"""The file, the object and the stream that labels go to."""

from __future__ import annotations

import io
import logging
import stat
from pathlib import Path
from typing import Any

import pytest

from gpushare.domain import manifests
from gpushare.errors import ClusterRefused, Conflict
from gpushare.host.files import HostFiles
from gpushare.labelling.publishing import LabelFile, LabelStream, NodeFeature
from support.memory_cluster import MemoryCluster

NAMESPACE, NAME = "nfd", "nvidia-features-for-gpu01"
LABELS = {"nvidia.com/gpu.count": "4", "nvidia.com/cuda.driver.rev": ""}
TEXT = "nvidia.com/cuda.driver.rev=\nnvidia.com/gpu.count=4\n"


async def test_file(tmp_path: Path) -> None:
    """Lines in order, readable for everybody, in a folder that is made."""
    path = tmp_path / "features.d" / "gfd"

    await LabelFile(path).publish(LABELS)

    assert path.read_text() == TEXT
    assert stat.S_IMODE(path.stat().st_mode) == 0o644
    assert HostFiles(path.parent).names("/") == ("gfd",)


async def test_a_file_that_is_right(tmp_path: Path) -> None:
    """It is left alone, and written again when somebody took it away or changed it."""
    path = tmp_path / "gfd"
    file = LabelFile(path)
    await file.publish(LABELS)
    before = path.stat().st_ino

    await file.publish(LABELS)
    assert path.stat().st_ino == before
    path.write_bytes(b"\xff")
    await file.publish(LABELS)
    assert path.read_text() == TEXT
    path.unlink()
    await file.publish(LABELS)
    assert path.read_text() == TEXT


async def test_a_file_that_cannot_be(tmp_path: Path) -> None:
    """Whoever publishes is told."""
    (tmp_path / "gfd").mkdir()

    with pytest.raises(OSError, match="gfd"):
        await LabelFile(tmp_path / "gfd").publish(LABELS)
    assert HostFiles(tmp_path).names("/") == ("gfd",)


async def test_stream() -> None:
    """Each time anew."""
    stream = io.StringIO()

    for _ in range(2):
        await LabelStream(stream).publish(LABELS)

    assert stream.getvalue() == 2 * TEXT


def feature(cluster: MemoryCluster, pod: str = "") -> NodeFeature:
    return NodeFeature(cluster, namespace=NAMESPACE, node="gpu01", pod=pod, log=logging.getLogger("labels"))


def written(cluster: MemoryCluster) -> Any:
    return cluster.now(manifests.NODE_FEATURE, NAME, NAMESPACE)


async def test_object() -> None:
    """Created once, replaced where it differs, and left alone where it does not."""
    cluster = MemoryCluster()

    await feature(cluster).publish(LABELS)
    await feature(cluster).publish(LABELS)
    await feature(cluster).publish({**LABELS, "nvidia.com/gpu.count": "3"})

    assert cluster.writes == [f"create NodeFeature {NAME}", f"replace NodeFeature {NAME}"]
    found = written(cluster)
    assert found["metadata"]["labels"] == {"nfd.node.kubernetes.io/node-name": "gpu01"}
    assert found["spec"]["labels"]["nvidia.com/gpu.count"] == "3"
    assert not any(found["spec"]["features"].values())


async def test_an_object_that_others_touch() -> None:
    """Annotations of others stay, and what a server leaves out of an empty object is no difference; labels are put right."""
    cluster = MemoryCluster()
    await feature(cluster).publish(LABELS)
    del written(cluster)["spec"]["features"]
    written(cluster)["metadata"]["annotations"] = {"of": "another"}

    await feature(cluster).publish(LABELS)
    assert len(cluster.writes) == 1
    written(cluster)["metadata"]["labels"] = {}
    await feature(cluster).publish(LABELS)

    assert written(cluster)["metadata"]["labels"] == {"nfd.node.kubernetes.io/node-name": "gpu01"}
    assert written(cluster)["metadata"]["annotations"] == {"of": "another"}


@pytest.mark.parametrize("verb", ["create", "replace"])
async def test_somebody_was_first(verb: str) -> None:
    """What was written meanwhile is read, and written again."""
    cluster = MemoryCluster()
    if verb == "replace":
        await feature(cluster).publish({})
    cluster.refusals[f"{verb} NodeFeature"] = Conflict("somebody was first")

    await feature(cluster).publish(LABELS)

    assert written(cluster)["spec"]["labels"] == LABELS


async def test_refused() -> None:
    """A server that says no is no reason to try again at once."""
    cluster = MemoryCluster()
    cluster.refusals["create NodeFeature"] = ClusterRefused("no such kind", code=404)

    with pytest.raises(ClusterRefused, match="no such kind"):
        await feature(cluster).publish(LABELS)


DAEMON_SET = {"apiVersion": "apps/v1", "kind": "DaemonSet", "name": "gfd", "uid": "u-1", "controller": True}


async def with_pod(cluster: MemoryCluster, *owners: dict[str, Any]) -> str:
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "gfd-abc", "namespace": NAMESPACE, "ownerReferences": list(owners)},
    }
    created = await cluster.create(pod)
    return str(created["metadata"]["uid"])


async def test_owners() -> None:
    """The DaemonSet, which is the controller, and the pod: with both gone, the object goes."""
    cluster = MemoryCluster()
    uid = await with_pod(cluster, {**DAEMON_SET, "blockOwnerDeletion": True})

    await feature(cluster, "gfd-abc").publish(LABELS)

    assert written(cluster)["metadata"]["ownerReferences"] == [
        DAEMON_SET,
        {"apiVersion": "v1", "kind": "Pod", "name": "gfd-abc", "uid": uid},
    ]


@pytest.mark.parametrize(
    "owners",
    [
        pytest.param((), id="standalone"),
        pytest.param(({**DAEMON_SET, "kind": "ReplicaSet"},), id="ReplicaSet"),
        pytest.param(({**DAEMON_SET, "controller": False},), id="no controller"),
    ],
)
async def test_no_owners(owners: tuple[dict[str, Any], ...]) -> None:
    """Another pod comes and goes without the node being another."""
    cluster = MemoryCluster()
    await with_pod(cluster, *owners)

    await feature(cluster, "gfd-abc").publish(LABELS)

    assert written(cluster)["metadata"]["ownerReferences"] == []


async def test_owners_unknown(caplog: pytest.LogCaptureFixture) -> None:
    """A pod that is not found is a warning; owners that the object has stay."""
    cluster = MemoryCluster()
    await feature(cluster, "gfd-abc").publish(LABELS)
    written(cluster)["metadata"]["ownerReferences"] = [DAEMON_SET]

    await feature(cluster, "gfd-abc").publish({})

    assert written(cluster)["metadata"]["ownerReferences"] == [DAEMON_SET]
    assert caplog.messages == ["owners of the NodeFeature unknown"] * 2
