"""Whatever a client sends, the server answers with a refusal, never with a failure of its own."""

import asyncio

import hypothesis.strategies as st
import pytest
from hypothesis import given, settings

from support.embedded_api import APPLY, JSON_PATCH, MERGE, EmbeddedApi

STRATEGIC = "application/strategic-merge-patch+json"
SCALARS = (
    st.none()
    | st.booleans()
    | st.integers(-5, 5)
    | st.sampled_from(["", "a", "a b", "v1", "1Gi", "2026-11-01T00:00:00Z"])
)
NAMES = st.sampled_from(
    ["metadata", "spec", "status", "data", "labels", "annotations", "name", "containers", "ownerReferences", "finalizers",
     "managedFields", "template", "resources", "limits", "conditions", "type", "op", "path", "value", "subjects", "roleRef",
     "kind", "apiVersion", "rules", "taints", "key", "selector", "matchLabels", "versions", "names", "$patch"],
)  # fmt: skip
JSON = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=4), max_leaves=12
)
PATHS = st.sampled_from(
    [
        "/api/v1/namespaces/default/configmaps", "/api/v1/namespaces/default/pods", "/api/v1/nodes",
        "/apis/apps/v1/namespaces/default/daemonsets", "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings",
        "/apis/rbac.authorization.k8s.io/v1/clusterroles", "/apis/events.k8s.io/v1/namespaces/default/events",
        "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", "/api/v1/namespaces/default/bindings",
        "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", "/apis/authentication.k8s.io/v1/tokenreviews",
        "/apis/policy/v1/namespaces/default/poddisruptionbudgets",
    ],
)  # fmt: skip


@settings(max_examples=150, deadline=None)
@given(path=PATHS, body=JSON)
def test_post(path: str, body: object) -> None:
    """Any JSON, to any door."""
    code, status = asyncio.run(EmbeddedApi().call("POST", path, body))
    assert code < 500 or "resourceVersion should not be set" in status["message"], status


@pytest.mark.parametrize("kind", [MERGE, JSON_PATCH, APPLY, STRATEGIC])
@settings(max_examples=30, deadline=None)
@given(body=JSON)
def test_patch(kind: str, body: object) -> None:
    """Any JSON, as any patch of objects that are there."""

    async def patch() -> None:
        api = EmbeddedApi()
        pods = "/api/v1/namespaces/default/pods"
        spec = {"containers": [{"name": "c", "image": "i"}]}
        await api.create(pods, {"metadata": {"name": "p"}, "spec": spec})
        for path in (f"{pods}/p", f"{pods}/p/status", "/apis/rbac.authorization.k8s.io/v1/clusterroles/view"):
            code, status = await api.call("PATCH", f"{path}?fieldManager=m", body, kind=kind)
            assert code < 500, status

    asyncio.run(patch())


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("PUT", "pods/p"), ("PUT", "pods/p/status"), ("POST", "pods/p/binding"), ("POST", "pods/p/eviction"),
        ("POST", "serviceaccounts/default/token"), ("DELETE", "pods/p"), ("DELETE", "pods"),
    ],
)  # fmt: skip
@settings(max_examples=20, deadline=None)
@given(body=JSON)
def test_other_doors(method: str, path: str, body: object) -> None:
    """Any JSON, to the doors of an object that is there."""

    async def send() -> None:
        api = EmbeddedApi()
        spec = {"containers": [{"name": "c", "image": "i"}]}
        await api.create("/api/v1/namespaces/default/pods", {"metadata": {"name": "p"}, "spec": spec})
        code, status = await api.call(method, f"/api/v1/namespaces/default/{path}", body)
        assert code < 500 or status["message"].startswith("target."), status

    asyncio.run(send())


@pytest.mark.parametrize(
    ("method", "query", "body", "code", "message"),
    [
        pytest.param("GET", "limit=abc", None, 400, 'strconv.ParseInt: parsing "abc": invalid syntax', id="limit"),
        pytest.param("GET", "limit=-1", None, 200, "", id="negative limit"),
        pytest.param("GET", "watch=1&timeoutSeconds=1.5", None, 400, 'parsing "1.5"', id="timeout of a watch"),
        pytest.param("POST", "dryRun=true", {"metadata": {"name": "a"}}, 422, 'supported values: "All"', id="dry run"),
        pytest.param("POST", "fieldValidation=Yes", {"metadata": {"name": "a"}}, 422, '"Warn"', id="validation"),
        pytest.param("DELETE", "dryRun=true", None, 422, "DeleteOptions.meta.k8s.io", id="dry run of a delete"),
        pytest.param("DELETE", "gracePeriodSeconds=x", None, 400, "invalid syntax", id="grace period"),
        pytest.param("DELETE", "propagationPolicy=orphan", None, 422, '"Orphan", "nil"', id="propagation policy"),
        pytest.param("DELETE", "", {"gracePeriodSeconds": "x"}, 400, "of type int64", id="type of an option"),
        pytest.param("DELETE", "", {"preconditions": "x"}, 400, "unmarshal string", id="preconditions"),
    ],
)
async def test_options(method: str, query: str, body: object, code: int, message: str) -> None:
    """A parameter that nobody understands is refused, and nothing is done."""
    api = EmbeddedApi()
    path = "/api/v1/namespaces/default/configmaps"
    before = await api.get(path)
    found, status = await api.call(method, f"{path}?{query}", body)
    assert (found, message in status.get("message", "")) == (code, True)
    assert await api.get(path) == before
