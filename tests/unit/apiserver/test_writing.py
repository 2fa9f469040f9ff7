"""Writes: what they may, what they may not, and what the server makes of them."""

import pytest

from support.embedded_api import APPLY, JSON_PATCH, MERGE, EmbeddedApi

MAPS = "/api/v1/namespaces/default/configmaps"
CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
WIDGETS = "/apis/x.io/v1/widgets"


def definition(**version: object) -> dict:
    schema = {"type": "object", "properties": {"spec": {"type": "object", "properties": {
        "size": {"type": "integer", "minimum": 1, "default": 2}}}, "status": {"type": "object",
        "x-kubernetes-preserve-unknown-fields": True}}}  # fmt: skip
    entry = {
        "name": "v1",
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": schema},
        "subresources": {"status": {}},
    }
    return {
        "metadata": {"name": "widgets.x.io"},
        "spec": {"group": "x.io", "scope": "Cluster", "names": {"plural": "widgets", "kind": "Widget"},
                 "versions": [{**entry, **version}]},
    }  # fmt: skip


@pytest.mark.parametrize(
    ("method", "path", "body", "code", "message"),
    [
        pytest.param("POST", MAPS, {"metadata": {}}, 422, "name or generateName is required", id="no name"),
        pytest.param("POST", MAPS, {"metadata": {"name": "a"}}, 409, 'configmaps "a" already exists', id="there already"),
        pytest.param("POST", f"{MAPS}/a", {}, 405, "does not allow this method", id="post to an object"),
        pytest.param(
            "POST", MAPS, {"kind": "Secret", "apiVersion": "v1"}, 400, "cannot be handled as a ConfigMap", id="other kind"
        ),
        pytest.param(
            "POST", MAPS, {"metadata": {"name": "b", "namespace": "x"}}, 400, "does not match the namespace", id="other namespace"
        ),
        pytest.param("POST", MAPS, {"metadata": {"name": "b", "resourceVersion": "5"}}, 500, "should not be set", id="version"),
        pytest.param(
            "POST", "/api/v1/namespaces/nope/configmaps", {"metadata": {"name": "b"}}, 404, 'namespaces "nope" not found',
            id="no such namespace",
        ),
        pytest.param("POST", MAPS, None, 400, "unexpected end of JSON input (<empty>)", id="no body"),
        pytest.param("POST", f"{MAPS}?fieldValidation=Strict", {"metadata": {"name": "b"}, "dta": {}}, 400,
                     'strict decoding error: unknown field "dta"', id="unknown field"),
        pytest.param("PUT", f"{MAPS}/b", {"metadata": {"name": "b"}}, 404, 'configmaps "b" not found', id="put of nothing"),
        pytest.param(
            "PUT", f"{MAPS}/a", {"metadata": {"name": "b"}}, 400, "does not match the name on the URL (a)", id="other name"
        ),
        pytest.param(
            "PUT", f"{MAPS}/a", {"metadata": {"name": "a", "resourceVersion": "1"}}, 409, "has been modified", id="stale"
        ),
        pytest.param(
            "PUT", f"{MAPS}/a", {"metadata": {"name": "a", "uid": "x"}}, 409, "UID in precondition: x", id="other object"
        ),
        pytest.param(
            "DELETE", f"{MAPS}/a", {"preconditions": {"uid": "x"}}, 409, "UID in the precondition (x)", id="delete other"
        ),
        pytest.param("GET", f"{MAPS}/a/status", None, 404, "could not find the requested resource", id="no such subresource"),
    ],
)  # fmt: skip
async def test_refused(api: EmbeddedApi, method: str, path: str, body: object, code: int, message: str) -> None:
    """What makes no sense is refused with a real server's words."""
    await api.create(MAPS, {"metadata": {"name": "a"}})
    found, status = await api.call(method, path, body)
    assert found == code
    assert message in status["message"]


@pytest.mark.parametrize(
    ("kind", "query", "body", "code", "message"),
    [
        pytest.param("application/json", "", {}, 415, "415: Unsupported Media Type", id="no patch type"),
        pytest.param(MERGE, "", None, 400, "unexpected end of JSON input", id="no body"),
        pytest.param(MERGE, "", {"metadata": {"uid": "x"}}, 422, "field is immutable", id="uid"),
        pytest.param(MERGE, "", {"metadata": {"name": "b"}}, 400, "does not match the name on the URL", id="name"),
        pytest.param(MERGE, "", {"metadata": {"namespace": "x"}}, 400, "does not match the namespace sent", id="namespace"),
        pytest.param(MERGE, "", {"metadata": {"labels": {"a b": "1"}}}, 422, "metadata.labels: Invalid value", id="label"),
        pytest.param(MERGE, "", {"data": {"a": 5}}, 422, "cannot unmarshal number", id="type"),
        pytest.param(MERGE, "force=true", {}, 422, "may not be specified for non-apply patch", id="force"),
        pytest.param(JSON_PATCH, "", [{"op": "test", "path": "/data", "value": 1}], 422, "the server rejected", id="test"),
        pytest.param(APPLY, "", {"apiVersion": "v1", "kind": "ConfigMap"}, 422, "fieldManager: Required value", id="nobody"),
        pytest.param(APPLY, "fieldManager=m", {"data": {}}, 400, "invalid object type: /, Kind=", id="no kind"),
        pytest.param(
            APPLY, "fieldManager=m", {"apiVersion": "v1", "kind": "ConfigMap", "data": {"x": "2"}}, 409,
            'conflict with "test" using v1: .data.x', id="conflict",
        ),
    ],
)  # fmt: skip
async def test_patch_refused(api: EmbeddedApi, kind: str, query: str, body: object, code: int, message: str) -> None:
    """A patch that cannot be meant changes nothing."""
    before = await api.create(MAPS, {"metadata": {"name": "a"}, "data": {"x": "1"}})
    found, status = await api.call("PATCH", f"{MAPS}/a?{query}", body, kind=kind)
    assert found == code
    assert message in status["message"]
    assert await api.get(f"{MAPS}/a") == before


async def test_nothing_changes(api: EmbeddedApi) -> None:
    """A write that changes nothing keeps the version, whatever door it comes through."""
    before = await api.create(MAPS, {"metadata": {"name": "a"}, "data": {"x": "1"}})
    assert (await api.call("PATCH", f"{MAPS}/a", {"data": {"x": "1"}}, kind=MERGE))[1] == before
    assert (await api.call("PUT", f"{MAPS}/a", before))[1] == before
    config = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": {"x": "1"}}
    _, once = await api.call("PATCH", f"{MAPS}/a?fieldManager=m", config, kind=APPLY)
    assert (await api.call("PATCH", f"{MAPS}/a?fieldManager=m", config, kind=APPLY))[1] == once


async def test_dry_run(api: EmbeddedApi) -> None:
    """A dry run answers as if, and stores nothing."""
    created = await api.create(f"{MAPS}?dryRun=All", {"metadata": {"name": "a"}})
    assert "uid" in created["metadata"]
    assert "resourceVersion" not in created["metadata"]
    assert (await api.call("GET", f"{MAPS}/a"))[0] == 404


async def test_generate_name(api: EmbeddedApi) -> None:
    """Names are made of letters that spell nothing."""
    created = await api.create(MAPS, {"metadata": {"generateName": "a-"}})
    name = created["metadata"]["name"]
    assert name.startswith("a-")
    assert len(name) == 7


async def test_custom_resource(api: EmbeddedApi) -> None:
    """A definition is served at once; its objects are pruned, defaulted, checked; status has its own door."""
    await api.create(CRDS, definition())
    created = await api.create(WIDGETS, {"apiVersion": "x.io/v1", "kind": "Widget", "metadata": {"name": "w"},
                                         "spec": {"bogus": 1}, "status": {"a": 1}})  # fmt: skip
    assert created["spec"] == {"size": 2}
    assert "status" not in created
    assert created["metadata"]["generation"] == 1
    _, changed = await api.call(
        "PATCH",
        f"{WIDGETS}/w/status",
        {"status": {"a": 1}, "spec": {"size": 9}, "metadata": {"labels": {"l": "1"}}},
        kind=MERGE,
    )
    assert (changed["status"], changed["spec"], changed["metadata"].get("labels")) == ({"a": 1}, {"size": 2}, None)
    assert changed["metadata"]["generation"] == 1
    code, status = await api.call("PATCH", f"{WIDGETS}/w", {"spec": {"size": 0}}, kind=MERGE)
    assert code == 422
    assert "spec.size in body should be greater than or equal to 1" in status["message"]
    _, changed = await api.call("PATCH", f"{WIDGETS}/w", {"spec": {"size": 3}}, kind=MERGE)
    assert changed["metadata"]["generation"] == 2
    code, status = await api.call("PUT", f"{WIDGETS}/w", {"metadata": {"name": "w"}, "spec": {}})
    assert (code, status["message"]) == (
        422, 'widgets.x.io "w" is invalid: metadata.resourceVersion: Invalid value: 0: must be specified for an update'
    )  # fmt: skip


async def test_definition_goes(api: EmbeddedApi) -> None:
    """With a definition go its objects, and its address."""
    await api.create(CRDS, definition())
    await api.create(WIDGETS, {"metadata": {"name": "w"}})
    await api.call("DELETE", f"{CRDS}/widgets.x.io")
    code, page = await api.call("GET", WIDGETS)
    assert (code, page) == (404, b"404 page not found\n")
    await api.create(CRDS, definition())
    assert (await api.get(WIDGETS))["items"] == []


async def test_node_status_door(api: EmbeddedApi) -> None:
    """The status door of a node lets labels through, as on a real server, but no spec."""
    await api.create("/api/v1/nodes", {"metadata": {"name": "n"}})
    body = {"metadata": {"labels": {"a": "b"}}, "spec": {"unschedulable": True}, "status": {"capacity": {"cpu": "0.5"}}}
    _, node = await api.call("PATCH", "/api/v1/nodes/n/status", body, kind=MERGE)
    assert node["metadata"]["labels"] == {"a": "b"}
    assert "unschedulable" not in node["spec"]
    assert node["status"]["capacity"] == {"cpu": "500m"}
    assert node["spec"]["taints"] == [{"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"}]


async def test_not_imitated(api: EmbeddedApi) -> None:
    """What has no effect here is stored, and whoever writes the first one is told."""
    path = "/apis/admissionregistration.k8s.io/v1/mutatingadmissionpolicies"
    for name, warned in (("a", True), ("b", False)):
        answer = await api.send(
            "POST", path, {"metadata": {"name": name}, "spec": {"validations": [{"expression": "true"}]}}
        )
        assert answer.code == 201
        assert any("has no effect in this server" in text for _, text in answer.headers) is warned


async def test_events_in_both_forms(api: EmbeddedApi) -> None:
    """An event written in one form is read in the other."""
    new = "/apis/events.k8s.io/v1/namespaces/default/events"
    regarding = {"kind": "ConfigMap", "name": "a", "namespace": "default"}
    await api.create(new, {"metadata": {"name": "e"}, "regarding": regarding, "reason": "R", "note": "text", "type": "Normal",
        "action": "A", "eventTime": "2026-11-01T00:00:00.000000Z", "reportingController": "x.dev/y",
        "reportingInstance": "z"})  # fmt: skip
    old = await api.get("/api/v1/namespaces/default/events/e")
    assert (old["message"], old["involvedObject"], old["reportingComponent"]) == ("text", regarding, "x.dev/y")
    selected = await api.get(f"{new}?fieldSelector=regarding.name=a")
    assert [item["note"] for item in selected["items"]] == ["text"]
    assert selected["kind"] == "EventList"


@pytest.mark.parametrize(
    ("method", "path", "code"),
    [
        pytest.param("DELETE", "/api/v1/configmaps", 405, id="all namespaces at once"),
        pytest.param("POST", "/api/v1/configmaps", 405, id="in no namespace"),
        pytest.param("GET", "/api/v1/configmaps/a", 404, id="one without its namespace"),
        pytest.param("PUT", MAPS, 405, id="without a name"),
        pytest.param("GET", "/api/v1/namespaces/default/nodes", 404, id="nodes of a namespace"),
        pytest.param("DELETE", "/api/v1/namespaces/default/nodes", 404, id="the nodes of a namespace"),
        pytest.param("GET", "/api/v1/configmaps", 200, id="list of all namespaces"),
        pytest.param("GET", "/api/v1/namespaces/default", 200, id="a namespace"),
    ],
)
async def test_doors(api: EmbeddedApi, method: str, path: str, code: int) -> None:
    """A path that a real server does not have does nothing."""
    await api.create(MAPS, {"metadata": {"name": "a"}})
    assert (await api.call(method, path, {"metadata": {"name": "a"}} if method[0] == "P" else None))[0] == code
    assert (await api.call("GET", f"{MAPS}/a"))[0] == 200


async def test_unknown_runtime_class(api: EmbeddedApi) -> None:
    """A pod with a handler that no node was told of is not created; with one that there is, it is."""
    pods = "/api/v1/namespaces/default/pods"
    spec = {"runtimeClassName": "nvidia", "containers": [{"name": "c", "image": "i"}]}
    code, status = await api.call("POST", pods, {"metadata": {"name": "p"}, "spec": spec})
    assert (code, status["message"]) == (
        403, 'pods "p" is forbidden: pod rejected: RuntimeClass "nvidia" not found',
    )  # fmt: skip

    await api.create("/apis/node.k8s.io/v1/runtimeclasses", {"metadata": {"name": "nvidia"}, "handler": "nvidia"})
    await api.create(pods, {"metadata": {"name": "p"}, "spec": spec})
