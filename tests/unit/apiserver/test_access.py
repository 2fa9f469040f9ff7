"""Who may do what, and how a refusal reads."""

import pytest

from support.embedded_api import APPLY, MERGE, EmbeddedApi

RBAC = "/apis/rbac.authorization.k8s.io/v1"
AGENT = "system:serviceaccount:default:agent"


async def allow(api: EmbeddedApi, user: str, *rules: dict, namespace: str = "", name: str = "r") -> None:
    """Gives rules to a user, in one namespace or everywhere."""
    place, prefix = (f"{RBAC}/namespaces/{namespace}/", "") if namespace else (f"{RBAC}/", "Cluster")
    await api.create(f"{place}{prefix.lower()}roles", {"metadata": {"name": name}, "rules": list(rules)})
    await api.create(
        f"{place}{prefix.lower()}rolebindings",
        {
            "metadata": {"name": name},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": f"{prefix}Role", "name": name},
            "subjects": [{"kind": "User", "name": user, "apiGroup": "rbac.authorization.k8s.io"}],
        },
    )


def rule(resources: str, verbs: str, **more: object) -> dict:
    return {"apiGroups": [""], "resources": resources.split(), "verbs": verbs.split(), **more}


@pytest.mark.parametrize(
    ("method", "path", "message"),
    [
        pytest.param(
            "GET", "/api/v1/nodes",
            'nodes is forbidden: User "joe" cannot list resource "nodes" in API group "" at the cluster scope', id="list",
        ),
        pytest.param(
            "GET", "/apis/apps/v1/namespaces/x/daemonsets/d",
            'daemonsets.apps "d" is forbidden: User "joe" cannot get resource "daemonsets" in API group "apps" in the '
            'namespace "x"', id="get",
        ),
        pytest.param(
            "GET", "/api/v1/namespaces/x/pods/p/log",
            'pods "p" is forbidden: User "joe" cannot get resource "pods/log" in API group "" in the namespace "x"',
            id="subresource",
        ),
        pytest.param("GET", "/metrics", 'forbidden: User "joe" cannot get path "/metrics"', id="path"),
    ],
)  # fmt: skip
async def test_refusal(api: EmbeddedApi, method: str, path: str, message: str) -> None:
    """The text names user, verb, resource, group and place."""
    code, status = await api.call(method, path, user="joe")
    assert (code, status["reason"], status["message"]) == (403, "Forbidden", message)


async def test_apply_of_a_new_object(api: EmbeddedApi) -> None:
    """Who may patch may not create: server-side apply of what is not there asks for both."""
    path = "/api/v1/namespaces/default/configmaps/a?fieldManager=joe"
    config = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": {"x": "1"}}
    await allow(api, "joe", rule("configmaps", "patch"))

    code, status = await api.call("PATCH", path, config, kind=APPLY, user="joe")
    assert (code, status["reason"]) == (403, "Forbidden")
    assert 'User "joe" cannot create resource "configmaps"' in status["message"]

    await api.create("/api/v1/namespaces/default/configmaps", {"metadata": {"name": "a"}})
    assert (await api.call("PATCH", path, config, kind=APPLY, user="joe"))[0] == 200


async def test_missing_role(api: EmbeddedApi) -> None:
    """A binding to a role that is not there is named in the refusal."""
    await allow(api, "joe", rule("pods", "get"))
    await api.call("DELETE", f"{RBAC}/clusterroles/r")
    _, status = await api.call("GET", "/api/v1/nodes", user="joe")
    assert status["message"].endswith('at the cluster scope: RBAC: clusterrole.rbac.authorization.k8s.io "r" not found')


@pytest.mark.parametrize(
    ("rules", "path", "code"),
    [
        pytest.param(rule("nodes", "list"), "/api/v1/nodes", 200, id="exact"),
        pytest.param(rule("*", "*"), "/api/v1/nodes", 200, id="everything"),
        pytest.param(rule("nodes", "get"), "/api/v1/nodes", 403, id="other verb"),
        pytest.param(rule("nodes", "list", resourceNames=["n"]), "/api/v1/nodes", 403, id="name, asked for all"),
        pytest.param(
            rule("nodes", "list", resourceNames=["n"]), "/api/v1/nodes?fieldSelector=metadata.name=n", 200,
            id="name, asked by field selector",
        ),
        pytest.param({"nonResourceURLs": ["/x/*"], "verbs": ["get"]}, "/x/y", 404, id="path"),
        pytest.param(rule("*/status", "get"), "/api/v1/nodes/n/status", 404, id="any status"),
        pytest.param(rule("nodes", "get"), "/api/v1/nodes/n/status", 403, id="resource without its subresource"),
    ],
)  # fmt: skip
async def test_rules(api: EmbeddedApi, rules: dict, path: str, code: int) -> None:
    """A rule allows what it says and no more."""
    await allow(api, "joe", rules)
    assert (await api.call("GET", path, user="joe"))[0] == code


async def test_namespace(api: EmbeddedApi) -> None:
    """A Role holds in its namespace only."""
    await allow(api, "joe", rule("configmaps", "list"), namespace="default")
    assert (await api.call("GET", "/api/v1/namespaces/default/configmaps", user="joe"))[0] == 200
    assert (await api.call("GET", "/api/v1/namespaces/kube-system/configmaps", user="joe"))[0] == 403
    assert (await api.call("GET", "/api/v1/configmaps", user="joe"))[0] == 403


async def test_aggregated_role(api: EmbeddedApi) -> None:
    """A ClusterRole with an aggregation rule has the rules of those that it selects."""
    part = {"metadata": {"name": "part", "labels": {"to": "whole"}}, "rules": [rule("nodes", "list")]}
    await api.create(f"{RBAC}/clusterroles", part)
    await allow(api, "joe", name="whole")
    selectors = {"clusterRoleSelectors": [{"matchLabels": {"to": "whole"}}]}
    await api.call("PATCH", f"{RBAC}/clusterroles/whole", {"aggregationRule": selectors}, kind=MERGE)
    assert (await api.call("GET", "/api/v1/nodes", user="joe"))[0] == 200


async def test_discovery_is_open(api: EmbeddedApi) -> None:
    """Every account may see what kinds there are; nobody without a token may."""
    assert (await api.call("GET", "/apis", user="joe"))[0] == 200
    code, status = await api.call("GET", "/apis", headers={"authorization": ""})
    assert (code, status["message"]) == (403, 'forbidden: User "system:anonymous" cannot get path "/apis"')
    assert (await api.call("GET", "/apis", headers={"authorization": "Bearer x"}))[0] == 401


async def test_review(api: EmbeddedApi) -> None:
    """What may I, and what may they, are answered with the binding that allows it."""
    await allow(api, "joe", rule("nodes", "list"))
    asked = {"spec": {"resourceAttributes": {"verb": "list", "resource": "nodes"}}}
    mine = await api.create("/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", asked, user="joe")
    reason = 'RBAC: allowed by ClusterRoleBinding "r" of ClusterRole "r" to User "joe"'
    assert mine["status"] == {"allowed": True, "reason": reason}
    asked["spec"]["user"] = "ann"
    theirs = await api.create("/apis/authorization.k8s.io/v1/subjectaccessreviews", asked)
    assert theirs["status"] == {"allowed": False}
    rules = await api.create("/apis/authorization.k8s.io/v1/selfsubjectrulesreviews", {"spec": {}}, user="joe")
    assert rule("nodes", "list") in rules["status"]["resourceRules"]


async def test_impersonation(api: EmbeddedApi) -> None:
    """A master acts as somebody else with that one's rights; others need the verb."""
    headers = {"impersonate-user": "joe"}
    assert (await api.call("GET", "/api/v1/nodes", headers=headers))[0] == 403
    who = await api.create("/apis/authentication.k8s.io/v1/selfsubjectreviews", {}, headers=headers)
    assert who["status"]["userInfo"] == {"username": "joe", "groups": ["system:authenticated"]}
    _, status = await api.call("GET", "/api/v1/nodes", user="ann", headers=headers)
    assert 'User "ann" cannot impersonate resource "users"' in status["message"]


async def test_escalation(api: EmbeddedApi) -> None:
    """Nobody makes or binds a role with rights that they lack, unless they may escalate or bind."""
    group = {"apiGroups": ["rbac.authorization.k8s.io"]}
    await allow(api, "joe", rule("nodes", "list"), rule("clusterroles clusterrolebindings", "create", **group))
    wanted = {"metadata": {"name": "new"}, "rules": [rule("nodes", "list get")]}
    code, status = await api.call("POST", f"{RBAC}/clusterroles", wanted, user="joe")
    assert code == 403
    assert status["message"] == (
        'clusterroles.rbac.authorization.k8s.io "new" is forbidden: user "joe" (groups=["system:authenticated"]) is '
        'attempting to grant RBAC permissions not currently held:\n{APIGroups:[""], Resources:["nodes"], Verbs:["get"]}'
    )
    wanted["rules"] = [rule("nodes", "list")]
    assert (await api.call("POST", f"{RBAC}/clusterroles", wanted, user="joe"))[0] == 201
    binding = {"metadata": {"name": "b"}, "roleRef": {"kind": "ClusterRole", "name": "cluster-admin",
               "apiGroup": "rbac.authorization.k8s.io"}}  # fmt: skip
    assert (await api.call("POST", f"{RBAC}/clusterrolebindings", binding, user="joe"))[0] == 403
    await allow(api, "joe", rule("clusterroles", "bind", resourceNames=["cluster-admin"], **group), name="binder")
    assert (await api.call("POST", f"{RBAC}/clusterrolebindings", binding, user="joe"))[0] == 201


async def test_service_account_token(api: EmbeddedApi) -> None:
    """A token that is bound to a pod names account, pod and node, and ends with the pod."""
    accounts = "/api/v1/namespaces/default/serviceaccounts"
    await api.create(accounts, {"metadata": {"name": "agent"}})
    await api.create("/api/v1/nodes", {"metadata": {"name": "n1"}})
    spec = {"serviceAccountName": "agent", "nodeName": "n1", "containers": [{"name": "c", "image": "i"}]}
    pod = await api.create("/api/v1/namespaces/default/pods", {"metadata": {"name": "p"}, "spec": spec})
    reference = {"kind": "Pod", "apiVersion": "v1", "name": "p", "uid": pod["metadata"]["uid"]}
    asked = {"spec": {"boundObjectRef": reference, "expirationSeconds": 3607}}
    issued = await api.create(f"{accounts}/agent/token", asked)
    headers = {"authorization": f"Bearer {issued['status']['token']}"}
    review = "/apis/authentication.k8s.io/v1/selfsubjectreviews"
    user = (await api.create(review, {}, headers=headers))["status"]["userInfo"]
    assert user["username"] == AGENT
    assert user["groups"] == ["system:serviceaccounts", "system:serviceaccounts:default", "system:authenticated"]
    assert user["extra"]["authentication.kubernetes.io/node-name"] == ["n1"]
    assert user["extra"]["authentication.kubernetes.io/pod-name"] == ["p"]
    await api.call("DELETE", "/api/v1/namespaces/default/pods/p", {"gracePeriodSeconds": 0})
    assert (await api.call("POST", review, {}, headers=headers))[0] == 401


@pytest.mark.parametrize(
    ("spec", "code", "message"),
    [
        pytest.param({"expirationSeconds": 5}, 422, "may not specify a duration less than 10 minutes", id="too short"),
        pytest.param({"boundObjectRef": {"kind": "Pod", "name": "no"}}, 404, 'pods "no" not found', id="no such pod"),
    ],
)
async def test_token_refused(api: EmbeddedApi, spec: dict, code: int, message: str) -> None:
    """A token that would be bound to nothing, or to a moment, is not given out."""
    path = "/api/v1/namespaces/default/serviceaccounts/default/token"
    found, status = await api.call("POST", path, {"spec": spec})
    assert found == code
    assert message in status["message"]
