"""What kinds there are, and their schemas."""

import json

import pytest

from support.embedded_api import EmbeddedApi

AGGREGATED = {"accept": "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,application/json"}
CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
DEFINITION = {
    "metadata": {"name": "widgets.x.io"},
    "spec": {
        "group": "x.io", "scope": "Namespaced", "names": {"plural": "widgets", "kind": "Widget", "shortNames": ["wd"]},
        "versions": [
            {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": {"type": "object", "properties": {
                "spec": {"type": "object", "description": "what for"}}}}, "subresources": {"status": {}}},
            {"name": "v2", "served": True, "storage": False, "schema": {"openAPIV3Schema": {"type": "object",
                "x-kubernetes-preserve-unknown-fields": True}}},
        ],
    },
}  # fmt: skip


async def groups(api: EmbeddedApi, path: str) -> dict[str, dict]:
    answer = await api.send("GET", path, headers=AGGREGATED)
    assert "as=APIGroupDiscoveryList" in answer.content_type
    return {item["metadata"].get("name", ""): item for item in json.loads(answer.body)["items"]}


async def test_both_forms_agree(api: EmbeddedApi) -> None:
    """What the aggregated pages list, the older pages list too."""
    await api.create(CRDS, DEFINITION)
    for path, prefix in (("/api", "/api"), ("/apis", "/apis")):
        for group, item in (await groups(api, path)).items():
            for version in item["versions"]:
                page = await api.get("/".join(part for part in (prefix, group, version["version"]) if part))
                old = {entry["name"] for entry in page["resources"] if "/" not in entry["name"]}
                assert old == {entry["resource"] for entry in version["resources"]}


async def test_definitions_come_and_go(api: EmbeddedApi) -> None:
    """A definition adds its kind in each served version, and takes it away when it goes."""
    await api.create(CRDS, DEFINITION)
    found = (await groups(api, "/apis"))["x.io"]["versions"]
    assert [version["version"] for version in found] == ["v1", "v2"]
    entry = found[0]["resources"][0]
    assert (entry["resource"], entry["shortNames"], entry["scope"]) == ("widgets", ["wd"], "Namespaced")
    assert entry["subresources"][0]["subresource"] == "status"
    await api.call("DELETE", f"{CRDS}/widgets.x.io")
    assert "x.io" not in await groups(api, "/apis")


async def test_versions_show_one_object(api: EmbeddedApi) -> None:
    """An object is the same in each version but for its apiVersion."""
    await api.create(CRDS, DEFINITION)
    await api.create("/apis/x.io/v1/namespaces/default/widgets", {"metadata": {"name": "w"}})
    first = await api.get("/apis/x.io/v1/namespaces/default/widgets/w")
    second = await api.get("/apis/x.io/v2/namespaces/default/widgets/w")
    assert {**first, "apiVersion": "x.io/v2"} == second


@pytest.mark.parametrize("path", ["/apis/nope.io", "/apis/nope.io/v1", "/api/v2", "/apis/apps/v9"])
async def test_unknown(api: EmbeddedApi, path: str) -> None:
    """What is not there is not found."""
    assert (await api.call("GET", path))[0] == 404


async def test_openapi(api: EmbeddedApi) -> None:
    """A page has what kubectl needs: kinds at paths, validation as a parameter, descriptions; and changes with the kinds."""
    before = (await api.get("/openapi/v3"))["paths"]
    await api.create(CRDS, DEFINITION)
    after = (await api.get("/openapi/v3"))["paths"]
    assert after.keys() - before.keys() == {"apis/x.io/v1", "apis/x.io/v2"}
    page = await api.get("/openapi/v3/apis/x.io/v1")
    patch = page["paths"]["/apis/x.io/v1/namespaces/{namespace}/widgets/{name}"]["patch"]
    assert patch["x-kubernetes-group-version-kind"] == {"group": "x.io", "version": "v1", "kind": "Widget"}
    assert "fieldValidation" in [parameter["name"] for parameter in patch["parameters"]]
    assert "application/strategic-merge-patch+json" not in patch["requestBody"]["content"]
    assert page["components"]["schemas"]["io.x.v1.Widget"]["properties"]["spec"]["description"] == "what for"
    core = await api.get("/openapi/v3/api/v1")
    assert core["components"]["schemas"]["io.k8s.api.core.v1.Node"]["properties"]["spec"]["description"]
    assert (
        "application/strategic-merge-patch+json"
        in core["paths"]["/api/v1/nodes/{name}"]["patch"]["requestBody"]["content"]
    )


async def test_forms(api: EmbeddedApi) -> None:
    """An object comes as JSON or as a Table; whoever takes neither learns so."""
    path = "/api/v1/namespaces/default"
    metadata_only = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"
    for accept in ("application/vnd.kubernetes.protobuf,application/json", "application/*", metadata_only):
        assert (await api.get(path, headers={"accept": accept}))["spec"] == {"finalizers": ["kubernetes"]}
    table = await api.get(path, headers={"accept": "application/json;as=Table;v=v1;g=meta.k8s.io"})
    assert table["rows"][0]["cells"][:2] == ["default", "Active"]
    for accept in ("text/html", "application/yaml"):
        assert (await api.call("GET", path, headers={"accept": accept}))[0] == 406


async def test_version(api: EmbeddedApi) -> None:
    """The server says the version that it was given."""
    assert (await api.get("/version"))["gitVersion"] == "v1.36.3"
    assert await api.call("GET", "/readyz") == (200, b"ok")
