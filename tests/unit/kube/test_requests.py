"""Requests as values."""

import pytest

from gpushare.domain import manifests
from gpushare.kube import requests
from gpushare.kube.cluster import PatchType
from gpushare.kube.requests import Request

CONFIG_MAP = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", "namespace": "n"}}
GPU_NODE = {"apiVersion": "gpushare.dev/v1alpha1", "kind": "GPUNode", "metadata": {"name": "gpu01"}}


@pytest.mark.parametrize(
    ("request_", "line"),
    [
        pytest.param(requests.build_get(manifests.NODE, "gpu01", ""), "GET /api/v1/nodes/gpu01", id="cluster-scoped"),
        pytest.param(
            requests.build_list(manifests.CONFIG_MAP, "n", labels="a=b,c", limit=2, after="x/y"),
            "GET /api/v1/namespaces/n/configmaps?labelSelector=a%3Db%2Cc&limit=2&continue=x%2Fy",
            id="page",
        ),
        pytest.param(requests.build_list(manifests.POD, ""), "GET /api/v1/pods", id="all namespaces"),
        pytest.param(
            requests.build_watch(
                manifests.GPU_NODE, "", labels="", fields="metadata.name=x", resource_version="7", timeout_seconds=9
            ),
            "GET /apis/gpushare.dev/v1alpha1/gpunodes?watch=true&allowWatchBookmarks=true"
            "&fieldSelector=metadata.name%3Dx&resourceVersion=7&timeoutSeconds=9",
            id="watch",
        ),
        pytest.param(
            requests.build_create(CONFIG_MAP, subresource="", name=""),
            "POST /api/v1/namespaces/n/configmaps",
            id="create",
        ),
        pytest.param(
            requests.build_create({"kind": "Binding", "metadata": {"namespace": "n"}}, subresource="binding", name="p"),
            "POST /api/v1/namespaces/n/pods/p/binding",
            id="bind",
        ),
        pytest.param(
            requests.build_create({"metadata": {"namespace": "n"}}, subresource="token", name="sa"),
            "POST /api/v1/namespaces/n/serviceaccounts/sa/token",
            id="token",
        ),
        pytest.param(
            requests.build_apply(GPU_NODE, manager="m", force=True, subresource="status"),
            "PATCH /apis/gpushare.dev/v1alpha1/gpunodes/gpu01/status?fieldManager=m&force=true",
            id="apply status",
        ),
        pytest.param(
            requests.build_replace(CONFIG_MAP, subresource=""), "PUT /api/v1/namespaces/n/configmaps/a", id="replace"
        ),
    ],
)
def test_line(request_: Request, line: str) -> None:
    """Each verb goes where the API server has it."""
    assert line == f"{request_.method} {request_.target}"


def test_patch_type() -> None:
    """The content type tells the patch format."""
    request = requests.build_patch("/x", [{"op": "test"}], PatchType.JSON)

    assert request.content_type == "application/json-patch+json"
    assert request.payload == b'[{"op":"test"}]'


def test_delete_options() -> None:
    """A uid guards the delete, and grace 0 is not the same as none."""
    assert requests.build_delete("/x", uid="u", grace_seconds=0).body == {
        "apiVersion": "v1",
        "kind": "DeleteOptions",
        "propagationPolicy": "Background",
        "preconditions": {"uid": "u"},
        "gracePeriodSeconds": 0,
    }
