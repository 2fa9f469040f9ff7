"""Labels, owner and hash of every object."""

from __future__ import annotations

import copy

import pytest

from gpushare import names
from gpushare.domain import manifests
from gpushare.domain.manifests import Manifest, ObjectKey
from gpushare.render.decorate import decorate, hash_of
from gpushare.render.ordering import in_order

OWNER = ObjectKey(manifests.CLUSTER_POLICY, "cluster-policy")


def daemon_set() -> Manifest:
    return {
        "apiVersion": "apps/v1",
        "kind": "DaemonSet",
        "metadata": {"name": "x", "namespace": "ns", "labels": {"app": "x"}},
        "spec": {"template": {"metadata": {"labels": {"app": "x"}}}},
    }


def test_decorated() -> None:
    """The object says whose it is; its pods say nothing new, so that they are not restarted."""
    before = daemon_set()

    [manifest] = decorate([before], component="device-plugin", owner=OWNER, owner_uid="uid")

    assert before == daemon_set()
    assert manifest["spec"] == before["spec"]
    metadata = manifest["metadata"]
    assert metadata["labels"] == {
        "app": "x", names.LABEL_COMPONENT: "device-plugin", names.LABEL_MANAGED_BY: "gpu-sharing-operator",
    }  # fmt: skip
    [owner] = metadata["ownerReferences"]
    assert (owner["kind"], owner["uid"], owner["controller"], owner["blockOwnerDeletion"]) == (
        "ClusterPolicy", "uid", True, True,
    )  # fmt: skip
    assert len(metadata["annotations"][names.ANNOTATION_HASH]) == 16


@pytest.mark.parametrize(
    ("owner", "expected"),
    [
        pytest.param(None, False, id="none"),
        pytest.param(OWNER, True, id="cluster-scoped"),
        pytest.param(ObjectKey(manifests.CONFIG_MAP, "m", "ns"), True, id="same namespace"),
        pytest.param(ObjectKey(manifests.CONFIG_MAP, "m", "other"), False, id="another namespace"),
    ],
)
def test_owner_where_legal(owner: ObjectKey | None, expected: bool) -> None:
    """An owner that the garbage collector would not find is left out: it would delete the object."""
    [manifest] = decorate([daemon_set()], component="c", owner=owner, owner_uid="uid")

    assert expected is ("ownerReferences" in manifest["metadata"])


def test_hash() -> None:
    """The hash knows every value and no order of keys."""
    changed = copy.deepcopy(daemon_set())
    changed["spec"]["template"]["metadata"]["labels"]["app"] = "y"

    assert hash_of(daemon_set()) == hash_of(dict(reversed(daemon_set().items())))
    assert hash_of(daemon_set()) != hash_of(changed)


def test_order() -> None:
    """What others need comes first; kinds without a place come last."""
    kinds = (
        manifests.GPU_NODE,
        manifests.DAEMON_SET,
        manifests.ROLE_BINDING,
        manifests.ROLE,
        manifests.SERVICE_ACCOUNT,
    )
    objects = [{"apiVersion": kind.api_version, "kind": kind.kind, "metadata": {"name": "x"}} for kind in kinds]

    assert [manifest["kind"] for manifest in in_order(objects)] == [
        "ServiceAccount", "Role", "RoleBinding", "DaemonSet", "GPUNode",
    ]  # fmt: skip
