"""ValidatingAdmissionPolicies: whom they stop, what they say, and which of them this server does not take."""

from __future__ import annotations

from typing import Any

import pytest

from gpushare.sandbox.apiserver.requests import Response
from support.embedded_api import MERGE, EmbeddedApi

POLICIES = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies"
BINDINGS = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicybindings"
MAPS = "/api/v1/namespaces/default/configmaps"
NODES = "/api/v1/nodes"


def rule(**more: Any) -> dict[str, Any]:
    everything = {
        "apiGroups": [""],
        "apiVersions": ["v1"],
        "operations": ["CREATE", "UPDATE"],
        "resources": ["configmaps"],
    }
    return everything | more


async def bind(
    api: EmbeddedApi, *validations: dict[str, Any], action: str = "Deny", binding: Any = None, **spec: Any
) -> None:
    """A policy, and that it counts."""
    spec.setdefault("matchConstraints", {"resourceRules": [rule()]})
    await api.create(POLICIES, {"metadata": {"name": "small"}, "spec": {"validations": list(validations), **spec}})
    content = {"policyName": "small", "validationActions": [action], **(binding or {})}
    await api.create(BINDINGS, {"metadata": {"name": "everywhere"}, "spec": content})


def config(name: str = "a", **data: str) -> dict[str, Any]:
    return {"metadata": {"name": name}, "data": data}


NO_X: dict[str, Any] = {"expression": "!('x' in object.?data.orValue({}))", "message": "no x, please"}


async def test_denied(api: EmbeddedApi) -> None:
    """In a real server's words; the rest passes."""
    await bind(api, NO_X)

    await api.create(MAPS, config(y="1"))
    code, status = await api.call("PATCH", f"{MAPS}/a", {"data": {"x": "1"}}, kind=MERGE)
    said = "ValidatingAdmissionPolicy 'small' with binding 'everywhere' denied request: no x, please"
    assert (code, status["reason"]) == (422, "Invalid")
    assert status["message"] == f'configmaps "a" is forbidden: {said}'
    assert status["details"]["causes"] == [{"message": said}]
    assert "x" not in (await api.get(f"{MAPS}/a"))["data"]


async def test_unbound(api: EmbeddedApi) -> None:
    """A policy alone does nothing."""
    await api.create(
        POLICIES,
        {
            "metadata": {"name": "small"},
            "spec": {"validations": [NO_X], "matchConstraints": {"resourceRules": [rule()]}},
        },
    )
    await api.create(MAPS, config(x="1"))


async def test_warned(api: EmbeddedApi) -> None:
    """A warning lets it through, and kubectl shows it."""
    await bind(api, NO_X, action="Warn")

    answer = await api.send("POST", MAPS, config(x="1"))
    assert isinstance(answer, Response)
    assert answer.code == 201
    said = "Validation failed for ValidatingAdmissionPolicy 'small' with binding 'everywhere': no x, please"
    assert said in dict(answer.headers)["Warning"]


@pytest.mark.parametrize(
    ("validation", "code", "said"),
    [
        pytest.param({"expression": "false"}, 422, "failed expression: false", id="no message"),
        pytest.param({"expression": "false", "reason": "Forbidden"}, 403, "failed expression", id="a reason"),
        pytest.param(
            {"expression": "false", "messageExpression": "'no ' + request.name + ' by ' + request.userInfo.username"},
            422,
            "no a by admin",
            id="a message of its own",
        ),
        pytest.param(
            {"expression": "false", "messageExpression": "object.nothing", "message": "fixed"}, 422, "fixed",
            id="a message that fails",
        ),
        pytest.param({"expression": "object.nothing == 1"}, 422, "resulted in error: Key not found", id="an error"),
        pytest.param({"expression": "object.metadata.name"}, 422, "failed expression", id="no boolean"),
        pytest.param({"expression": "variables.broken == 1"}, 422, 'Key not found in map : "broken"', id="a broken variable"),
        pytest.param({"expression": "variables.long == 'aa'"}, 201, "", id="a variable"),
        pytest.param({"expression": "namespaceObject.metadata.name == 'default'"}, 201, "", id="the namespace"),
        pytest.param({"expression": "oldObject == null && request.operation == 'CREATE'"}, 201, "", id="the request"),
        pytest.param({"expression": "request.resource.resource == 'configmaps'"}, 201, "", id="the resource"),
    ],
)  # fmt: skip
async def test_validations(api: EmbeddedApi, validation: dict[str, Any], code: int, said: str) -> None:
    """What an expression gives decides, and what is said."""
    variables = [
        {"name": "short", "expression": "object.metadata.name"},
        {"name": "long", "expression": "variables.short + variables.short"},
        {"name": "broken", "expression": "object.nothing"},
    ]
    await bind(api, validation, variables=variables)

    found, answer = await api.call("POST", MAPS, config())
    assert found == code, answer
    assert said in answer.get("message", "")


@pytest.mark.parametrize(
    ("expression", "failure_policy", "code"),
    [
        pytest.param("request.userInfo.username == 'admin'", "Fail", 422, id="holds"),
        pytest.param("request.userInfo.username == 'other'", "Fail", 201, id="does not hold"),
        pytest.param("object.nothing == 1", "Fail", 422, id="fails"),
        pytest.param("object.nothing == 1", "Ignore", 201, id="may fail"),
    ],
)
async def test_conditions(api: EmbeddedApi, expression: str, failure_policy: str, code: int) -> None:
    """Conditions say whom a policy means."""
    conditions = [{"name": "who", "expression": expression}]
    await bind(api, {"expression": "false"}, matchConditions=conditions, failurePolicy=failure_policy)

    assert (await api.call("POST", MAPS, config()))[0] == code


@pytest.mark.parametrize(
    ("constraints", "binding", "code"),
    [
        pytest.param({"resourceRules": [rule(operations=["*"], apiGroups=["*"], resources=["*"])]}, {}, 422, id="all"),
        pytest.param({"resourceRules": [rule(resources=["*/*"])]}, {}, 422, id="all, and what is below"),
        pytest.param({"resourceRules": [rule(resources=["configmaps/*"])]}, {}, 422, id="the resource and what is below"),
        pytest.param({"resourceRules": [rule(resources=["*/status"])]}, {}, 201, id="status only"),
        pytest.param({"resourceRules": [rule(resources=["secrets"])]}, {}, 201, id="another resource"),
        pytest.param({"resourceRules": [rule(operations=["DELETE"])]}, {}, 201, id="another operation"),
        pytest.param({"resourceRules": [rule(apiVersions=["v2"])]}, {}, 201, id="another version"),
        pytest.param({"resourceRules": [rule(scope="Cluster")]}, {}, 201, id="another scope"),
        pytest.param({"resourceRules": [rule(resourceNames=["b"])]}, {}, 201, id="another name"),
        pytest.param({"resourceRules": [rule()], "excludeResourceRules": [rule(resourceNames=["a"])]}, {}, 201, id="excluded"),
        pytest.param(
            {"resourceRules": [rule()], "objectSelector": {"matchLabels": {"a": "b"}}}, {}, 201, id="without the label"
        ),
        pytest.param(
            {"resourceRules": [rule()], "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "default"}}},
            {}, 422, id="its namespace",
        ),
        pytest.param(
            {"resourceRules": [rule()]},
            {"matchResources": {"namespaceSelector": {"matchExpressions": [{"key": "far", "operator": "Exists"}]}}},
            201, id="bound for another namespace",
        ),
    ],
)  # fmt: skip
async def test_matching(api: EmbeddedApi, constraints: dict[str, Any], binding: dict[str, Any], code: int) -> None:
    """Rules and selectors, of the policy and of its binding, all have to choose the object."""
    await bind(api, {"expression": "false"}, matchConstraints=constraints, binding=binding)

    assert (await api.call("POST", MAPS, config()))[0] == code


async def test_deletes(api: EmbeddedApi) -> None:
    """A delete is judged by what there was; so is each of many."""
    await api.create(MAPS, config(keep="1"))
    await bind(
        api,
        {"expression": "object == null && !('keep' in oldObject.data)", "message": "kept"},
        matchConstraints={"resourceRules": [rule(operations=["DELETE"])]},
    )

    assert (await api.call("DELETE", f"{MAPS}/a"))[1]["message"].endswith("denied request: kept")
    assert (await api.call("DELETE", f"{MAPS}?fieldSelector=metadata.name=a"))[0] == 422
    assert await api.get(f"{MAPS}/a")


async def test_status(api: EmbeddedApi) -> None:
    """The door counts: status is another resource than the object."""
    await api.create(NODES, {"metadata": {"name": "n"}})
    await bind(
        api, {"expression": "false"}, matchConstraints={"resourceRules": [rule(resources=["nodes/status"])]}
    )  # fmt: skip

    labels = {"metadata": {"labels": {"a": "b"}}}
    assert (await api.call("PATCH", f"{NODES}/n/status", labels, kind=MERGE))[0] == 422
    assert (await api.call("PATCH", f"{NODES}/n", labels, kind=MERGE))[0] == 200


async def test_policies_do_not_judge_policies(api: EmbeddedApi) -> None:
    """Or nobody could take one away."""
    everything = rule(apiGroups=["*"], operations=["*"], resources=["*/*"], apiVersions=["*"])
    await bind(api, {"expression": "false"}, matchConstraints={"resourceRules": [everything]})

    assert (await api.call("POST", MAPS, config()))[0] == 422
    assert (await api.call("DELETE", f"{BINDINGS}/everywhere"))[0] == 200
    assert (await api.call("POST", MAPS, config()))[0] == 201


@pytest.mark.parametrize(
    ("spec", "said"),
    [
        pytest.param({"validations": [{"expression": "object."}]}, "compilation failed: ERROR: <input>:1:8", id="half"),
        pytest.param({"validations": [{"expression": "authorizer.x()"}]}, "undeclared reference", id="the authorizer"),
        pytest.param({"validations": [{"expression": " "}]}, "spec.validations[0].expression: Required", id="nothing"),
        pytest.param(
            {"validations": [{"expression": "true", "reason": "So"}]}, "spec.validations[0].reason", id="reason"
        ),
        pytest.param(
            {"validations": [{"expression": "true", "messageExpression": "1 +"}]},
            "messageExpression",
            id="half a message",
        ),
        pytest.param({"variables": [{"name": "a", "expression": "params.a"}]}, "spec.variables[0]", id="parameters"),
        pytest.param({"matchConditions": [{"expression": "variables.a"}]}, "matchConditions[0].name", id="no name"),
        pytest.param({"matchConditions": [{"name": "a", "expression": "variables.a"}]}, "undeclared", id="too early"),
        pytest.param({"paramKind": {"apiVersion": "v1", "kind": "ConfigMap"}}, "spec.paramKind: Forbidden", id="kind"),
        pytest.param({"matchConstraints": {}}, "resourceRules: Required", id="no rules"),
        pytest.param({"failurePolicy": "Perhaps"}, "spec.failurePolicy: Unsupported", id="failure policy"),
        pytest.param({"validations": []}, "spec.validations: Required", id="no validations"),
    ],
)
async def test_policies_refused(api: EmbeddedApi, spec: dict[str, Any], said: str) -> None:
    """A policy that could not be evaluated is not stored, so that nobody relies on it."""
    good = {"validations": [{"expression": "true"}], "matchConstraints": {"resourceRules": [rule()]}}
    code, status = await api.call("POST", POLICIES, {"metadata": {"name": "p"}, "spec": good | spec})
    assert code == 422
    assert said in status["message"]


@pytest.mark.parametrize(
    ("spec", "said"),
    [
        pytest.param({"policyName": ""}, "spec.policyName: Required", id="no policy"),
        pytest.param({"validationActions": []}, "spec.validationActions: Required", id="no action"),
        pytest.param({"validationActions": ["Drop"]}, 'Unsupported value: "Drop"', id="no such action"),
        pytest.param({"validationActions": ["Deny", "Warn"]}, "both Deny and Warn", id="both"),
        pytest.param({"paramRef": {"name": "a"}}, "spec.paramRef: Forbidden", id="parameters"),
    ],
)
async def test_bindings_refused(api: EmbeddedApi, spec: dict[str, Any], said: str) -> None:
    """So is a binding that could not count."""
    good = {"policyName": "p", "validationActions": ["Deny"]}
    code, status = await api.call("POST", BINDINGS, {"metadata": {"name": "b"}, "spec": good | spec})
    assert code == 422
    assert said in status["message"]
