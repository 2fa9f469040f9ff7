"""Admission webhooks: who is asked about what, and what comes of the answers."""

from __future__ import annotations

import base64
import json
from dataclasses import dataclass, field
from typing import Any

import pytest

from gpushare.sandbox.apiserver.handling.calling import CallFailed
from gpushare.sandbox.apiserver.requests import Response
from support.embedded_api import APPLY, MERGE, EmbeddedApi

GROUP = "/apis/admissionregistration.k8s.io/v1"
MUTATING, VALIDATING = f"{GROUP}/mutatingwebhookconfigurations", f"{GROUP}/validatingwebhookconfigurations"
MAPS = "/api/v1/namespaces/default/configmaps"


def webhook(name: str = "maps.example.com", **more: Any) -> dict[str, Any]:
    rules = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["*"], "resources": ["configmaps"]}
    return {
        "name": name, "clientConfig": {"url": f"https://{name}/"}, "rules": [rules], "sideEffects": "None",
        "admissionReviewVersions": ["v1"], **more,
    }  # fmt: skip


def config(name: str = "a", **data: str) -> dict[str, Any]:
    return {"metadata": {"name": name}, "data": data}


def adding(key: str, value: str = "1") -> list[dict[str, Any]]:
    return [{"op": "add", "path": f"/data/{key}", "value": value}]


@dataclass
class Hooks:
    """Answers for all webhooks of a test, by their names."""

    answers: dict[str, Any] = field(default_factory=dict)
    """What stands in `response` besides uid and permission; an exception is raised."""
    asked: list[tuple[str, dict[str, Any]]] = field(default_factory=list)

    async def answer(self, webhook: dict[str, Any], review: dict[str, Any]) -> bytes:
        request = json.loads(json.dumps(review["request"]))  # as it stands now
        self.asked.append((webhook["name"], request))
        more = self.answers.get(webhook["name"], {})
        more = more(request) if callable(more) else more
        if isinstance(more, Exception):
            raise more
        if isinstance(more, list):
            more = {"patchType": "JSONPatch", "patch": base64.b64encode(json.dumps(more).encode()).decode()}
        response = {"uid": request["uid"], "allowed": True, **more}
        return json.dumps(
            {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": response}
        ).encode()

    @property
    def names(self) -> list[str]:
        return [name for name, _ in self.asked]


@pytest.fixture
def hooks(api: EmbeddedApi) -> Hooks:
    hooks = Hooks()
    api.answer = hooks.answer
    return hooks


async def register(api: EmbeddedApi, *webhooks: dict[str, Any], path: str = MUTATING, name: str = "test") -> None:
    await api.create(path, {"metadata": {"name": name}, "webhooks": list(webhooks)})


async def test_patched(api: EmbeddedApi, hooks: Hooks) -> None:
    """A patch counts, whatever way the object is written; the webhook sees what would be stored, and what was."""
    hooks.answers["maps.example.com"] = adding("added")
    await register(api, webhook())

    created = await api.create(MAPS, config(own="1"))
    assert created["data"] == {"own": "1", "added": "1"}
    _, changed = await api.call("PATCH", f"{MAPS}/a", {"data": {"own": "2"}}, kind=MERGE)
    assert changed["data"] == {"own": "2", "added": "1"}
    _, applied = await api.call(
        "PATCH",
        f"{MAPS}/b?fieldManager=me",
        {"apiVersion": "v1", "kind": "ConfigMap", **config("b", x="1")},
        kind=APPLY,
    )
    assert applied["data"] == {"x": "1", "added": "1"}

    first, second = hooks.asked[0][1], hooks.asked[1][1]
    assert (first["operation"], first["oldObject"], first["dryRun"]) == ("CREATE", None, False)
    assert first["object"]["data"] == {"own": "1"}
    assert first["userInfo"]["username"] == "admin"
    assert (second["operation"], second["oldObject"]["data"]) == ("UPDATE", {"own": "1", "added": "1"})
    assert second["options"] == {"kind": "UpdateOptions", "apiVersion": "meta.k8s.io/v1"}


async def test_pod(api: EmbeddedApi, hooks: Hooks) -> None:
    """A pod is complete when a webhook sees it, and is completed and checked again after it."""
    container = [{"op": "add", "path": "/spec/containers/-", "value": {"name": "more", "image": "more:1"}}]
    hooks.answers["maps.example.com"] = container
    rule = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["pods"]}
    await register(api, webhook(rules=[rule]))
    spec = {"containers": [{"name": "c", "image": "i:1", "resources": {"limits": {"example.com/gpu": 1}}}]}

    created = await api.create("/api/v1/namespaces/default/pods", {"metadata": {"name": "p"}, "spec": spec})

    [first] = hooks.asked[0][1]["object"]["spec"]["containers"]
    assert first["resources"]["requests"] == {"example.com/gpu": "1"}
    assert created["spec"]["containers"][1]["imagePullPolicy"] == "IfNotPresent"
    hooks.answers["maps.example.com"] = [{"op": "replace", "path": "/spec/containers/0/name", "value": "Not a name"}]
    code, status = await api.call("POST", "/api/v1/namespaces/default/pods", {"metadata": {"name": "q"}, "spec": spec})
    assert (code, status["reason"]) == (422, "Invalid")


@pytest.mark.parametrize(
    ("more", "code", "reason", "message"),
    [
        pytest.param({}, 400, None, " without explanation", id="no status"),
        pytest.param({"status": {"message": "no"}}, 400, None, ": no", id="a message"),
        pytest.param({"status": {"message": "no", "code": 422, "reason": "Invalid"}}, 422, "Invalid", ": no", id="all"),
        pytest.param({"status": {"code": 200, "reason": "Forbidden"}}, 400, "Forbidden", ": Forbidden", id="a reason"),
    ],
)
async def test_refused(api: EmbeddedApi, hooks: Hooks, more: Any, code: int, reason: Any, message: str) -> None:
    """In a real server's words, whatever the failure policy; nothing is stored."""
    hooks.answers["maps.example.com"] = {"allowed": False, **more}
    await register(api, webhook(failurePolicy="Ignore"), path=VALIDATING if code == 400 else MUTATING)

    found, status = await api.call("POST", MAPS, config())

    assert (found, status.get("reason")) == (code, reason)
    assert status["message"] == f'admission webhook "maps.example.com" denied the request{message}'
    assert (await api.call("GET", f"{MAPS}/a"))[0] == 404


async def test_warnings(api: EmbeddedApi, hooks: Hooks) -> None:
    """What webhooks warn of reaches the client, of deletes too."""
    hooks.answers["maps.example.com"] = {"warnings": ["mind the gap"]}
    await register(api, webhook(), path=VALIDATING)

    for method, path, body in (("POST", MAPS, config()), ("DELETE", f"{MAPS}/a", None)):
        answer = await api.send(method, path, body)
        assert isinstance(answer, Response)
        assert dict(answer.headers)["Warning"] == '299 - "mind the gap"'


@pytest.mark.parametrize("path", [MUTATING, VALIDATING])
async def test_delete(api: EmbeddedApi, hooks: Hooks, path: str) -> None:
    """A delete can be refused, one by one and all together."""
    await api.create(MAPS, config())
    hooks.answers["maps.example.com"] = {"allowed": False, "status": {"message": "stays"}}
    await register(api, webhook(), path=path)

    assert (await api.call("DELETE", f"{MAPS}/a"))[0] == 400
    assert (await api.call("DELETE", MAPS))[0] == 400

    asked = hooks.asked[0][1]
    assert (asked["operation"], asked["object"], asked["oldObject"]["metadata"]["name"]) == ("DELETE", None, "a")
    assert (await api.get(f"{MAPS}/a"))["metadata"]["name"] == "a"


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        pytest.param(CallFailed("failed to call webhook: gone"), "failed to call webhook: gone", id="away"),
        pytest.param({"uid": "x"}, 'received invalid webhook response: expected response.uid="', id="another question"),
        pytest.param(
            {"patch": "W10="},
            "received invalid webhook response: webhook returned response.patch but not response.patchType",
            id="no type of patch",
        ),
        pytest.param(
            {"patch": "!", "patchType": "JSONPatch"},
            "received invalid webhook response: invalid JSON patch",
            id="no patch",
        ),
    ],
)
async def test_failed(api: EmbeddedApi, hooks: Hooks, answer: Any, why: str) -> None:
    """Who cannot answer stops the request, or is passed over, as its failure policy says."""
    hooks.answers["maps.example.com"] = answer
    await register(api, webhook())

    code, status = await api.call("POST", MAPS, config())
    assert (code, status["reason"]) == (500, "InternalError")
    assert status["message"].startswith(f'Internal error occurred: failed calling webhook "maps.example.com": {why}')

    await api.call("PATCH", f"{MUTATING}/test", {"webhooks": [webhook(failurePolicy="Ignore")]}, kind=MERGE)
    await api.create(MAPS, config())


@pytest.mark.parametrize(
    ("more", "asked"),
    [
        pytest.param({}, True, id="all"),
        pytest.param({"objectSelector": {"matchLabels": {"a": "b"}}}, False, id="object selector"),
        pytest.param({"namespaceSelector": {"matchLabels": {"a": "b"}}}, False, id="namespace selector"),
        pytest.param(
            {"matchConditions": [{"name": "x", "expression": "'x' in object.data"}]}, True, id="condition holds"
        ),
        pytest.param(
            {"matchConditions": [{"name": "x", "expression": "'y' in object.data"}]}, False, id="condition does not"
        ),
        pytest.param(
            {"failurePolicy": "Ignore", "matchConditions": [{"name": "x", "expression": "object.nothing == 1"}]},
            False,
            id="condition fails, and may",
        ),
    ],
)
async def test_concerned(api: EmbeddedApi, hooks: Hooks, more: Any, asked: bool) -> None:
    """Selectors and conditions keep a webhook away from what does not concern it."""
    await register(api, webhook(**more))

    await api.create(MAPS, config(x="1"))
    await api.create("/api/v1/namespaces", {"metadata": {"name": "other"}})

    assert bool(hooks.asked) == asked


async def test_condition_fails(api: EmbeddedApi, hooks: Hooks) -> None:
    """A condition that cannot be evaluated stops the request of a webhook that must not fail."""
    await register(api, webhook(matchConditions=[{"name": "x", "expression": "object.nothing == 1"}]))

    code, status = await api.call("POST", MAPS, config())

    assert (code, status["reason"], hooks.asked) == (403, "Forbidden", [])


async def test_dry_run(api: EmbeddedApi, hooks: Hooks) -> None:
    """A dry run asks webhooks without side effects, and says that it is one; nothing is stored."""
    hooks.answers["maps.example.com"] = adding("added")
    await register(api, webhook())

    made = await api.create(f"{MAPS}?dryRun=All", config(x="1"))

    assert made["data"] == {"x": "1", "added": "1"}
    assert hooks.asked[0][1]["dryRun"] is True
    assert (await api.call("GET", f"{MAPS}/a"))[0] == 404


async def test_order_and_reinvocation(api: EmbeddedApi, hooks: Hooks) -> None:
    """By the configurations' names, then as they stand; who wants to is asked again when a later one changed something."""
    hooks.answers = {"first.example.com": adding("first"), "second.example.com": adding("second")}
    await register(api, webhook("second.example.com", reinvocationPolicy="IfNeeded"), name="b")
    await register(
        api, webhook("first.example.com", reinvocationPolicy="IfNeeded"), webhook("idle.example.com"), name="a"
    )

    await api.create(MAPS, config(x="1"))

    assert hooks.names == ["first.example.com", "idle.example.com", "second.example.com", "first.example.com"]
    assert hooks.asked[-1][1]["object"]["data"] == {"x": "1", "first": "1", "second": "1"}


async def test_changed_meanwhile(api: EmbeddedApi, hooks: Hooks) -> None:
    """Who patches gets the patch onto what somebody else wrote meanwhile; who named a version is told."""
    await api.create(MAPS, config(x="1"))
    await register(api, webhook())
    before = await api.get(f"{MAPS}/a")
    others = iter(range(100))
    store, key = api.api.store, ("", "configmaps")

    def meanwhile(_: Any) -> Any:
        if next(others) == 0:
            now = store.get(key, "default", "a")
            assert now is not None
            metadata = dict(now.object["metadata"])
            store.put(key, {**now.object, "metadata": metadata, "data": {**now.object["data"], "theirs": "1"}})
        return {}

    hooks.answers["maps.example.com"] = meanwhile
    _, changed = await api.call("PATCH", f"{MAPS}/a", {"data": {"mine": "1"}}, kind=MERGE)
    assert changed["data"] == {"x": "1", "theirs": "1", "mine": "1"}

    others = iter(range(100))
    code, status = await api.call("PUT", f"{MAPS}/a", {**changed, "data": {}})
    assert (code, status["reason"]) == (409, "Conflict")
    assert before["metadata"]["uid"] == changed["metadata"]["uid"]


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        pytest.param({"name": "short"}, "webhooks[0].name", id="name"),
        pytest.param({"admissionReviewVersions": ["v1beta1"]}, "webhooks[0].admissionReviewVersions", id="version"),
        pytest.param({"sideEffects": "Some"}, "webhooks[0].sideEffects", id="side effects"),
        pytest.param({"timeoutSeconds": 31}, "webhooks[0].timeoutSeconds", id="timeout"),
        pytest.param({"clientConfig": {}}, "webhooks[0].clientConfig", id="nobody to ask"),
        pytest.param({"clientConfig": {"url": "http://a/"}}, "webhooks[0].clientConfig.url", id="no TLS"),
        pytest.param(
            {"matchConditions": [{"name": "x", "expression": "object."}]},
            "webhooks[0].matchConditions[0].expression",
            id="condition that does not compile",
        ),
    ],
)
@pytest.mark.parametrize("path", [MUTATING, VALIDATING])
async def test_bad_configuration(api: EmbeddedApi, changes: Any, field: str, path: str) -> None:
    """What could not be asked is not stored."""
    code, status = await api.call("POST", path, {"metadata": {"name": "bad"}, "webhooks": [webhook(**changes)]})

    assert (code, [cause["field"] for cause in status["details"]["causes"]]) == (422, [field])
