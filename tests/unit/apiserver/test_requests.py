"""What a URL asks for."""

import pytest

from gpushare.sandbox.apiserver.requests import Request, Target, resolve


def target(method: str, path: str, **query: str) -> Target:
    return resolve(Request(method, path, query, {}))


@pytest.mark.parametrize(
    ("method", "path", "query", "expected"),
    [
        pytest.param("GET", "/api/v1/nodes", {}, ("list", "", "nodes", "", "", ""), id="list"),
        pytest.param("GET", "/api/v1/nodes", {"watch": "1"}, ("watch", "", "nodes", "", "", ""), id="watch"),
        pytest.param("GET", "/api/v1/nodes/n", {"watch": "1"}, ("get", "", "nodes", "", "n", ""), id="no watch of one"),
        pytest.param("GET", "/api/v1/namespaces/x", {}, ("get", "", "namespaces", "x", "x", ""), id="a namespace"),
        pytest.param(
            "PUT", "/api/v1/namespaces/x/finalize", {}, ("update", "", "namespaces", "x", "x", "finalize"), id="its end"
        ),
        pytest.param(
            "POST",
            "/apis/apps/v1/namespaces/x/daemonsets",
            {},
            ("create", "apps", "daemonsets", "x", "", ""),
            id="create",
        ),
        pytest.param(
            "GET", "/api/v1/namespaces/x/pods/p/log", {}, ("get", "", "pods", "x", "p", "log"), id="a subresource"
        ),
        pytest.param(
            "DELETE", "/api/v1/namespaces/x/pods", {}, ("deletecollection", "", "pods", "x", "", ""), id="a collection"
        ),
        pytest.param(
            "GET", "/api/v1/pods", {"fieldSelector": "metadata.name=p"}, ("list", "", "pods", "", "p", ""), id="by name"
        ),
    ],
)
def test_resource(method: str, path: str, query: dict[str, str], expected: tuple[str, ...]) -> None:
    """Verb, group, resource, namespace, name and subresource are those that rules speak of."""
    found = target(method, path, **query)
    assert found.is_resource
    assert (found.verb, found.group, found.resource, found.namespace, found.name, found.subresource) == expected


@pytest.mark.parametrize("path", ["/", "/version", "/api", "/api/v1", "/apis", "/apis/apps/v1", "/openapi/v3"])
def test_page(path: str) -> None:
    """Discovery and the like are paths, not resources."""
    assert target("GET", path) == Target("get", path)
