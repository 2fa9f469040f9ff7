"""Scale, binding, eviction, logs: doors of objects other than the objects."""

import pytest

from support.embedded_api import MERGE, EmbeddedApi

APPS = "/apis/apps/v1/namespaces/default/deployments"
PODS = "/api/v1/namespaces/default/pods"
BUDGETS = "/apis/policy/v1/namespaces/default/poddisruptionbudgets"
TEMPLATE = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}}


async def run(api: EmbeddedApi, *containers: str, **spec: str) -> None:
    """A pod of these containers."""
    images = [{"name": name, "image": "i"} for name in containers]
    await api.create(PODS, {"metadata": {"name": "p", "labels": {"a": "b"}}, "spec": {"containers": images, **spec}})


async def test_scale(api: EmbeddedApi) -> None:
    """The scale of a Deployment is read and written through its own door."""
    spec = {"replicas": 2, "selector": {"matchLabels": {"a": "b"}}, "template": TEMPLATE}
    await api.create(APPS, {"metadata": {"name": "d"}, "spec": spec})
    scale = await api.get(f"{APPS}/d/scale")
    assert (scale["kind"], scale["spec"], scale["status"]) == (
        "Scale",
        {"replicas": 2},
        {"replicas": 0, "selector": "a=b"},
    )
    _, scale = await api.call("PATCH", f"{APPS}/d/scale", {"spec": {"replicas": 5}}, kind=MERGE)
    assert scale["spec"] == {"replicas": 5}
    deployment = await api.get(f"{APPS}/d")
    assert (deployment["spec"]["replicas"], deployment["metadata"]["generation"]) == (5, 2)
    code, _ = await api.call("PATCH", f"{APPS}/d/scale", {"spec": {"replicas": -1}}, kind=MERGE)
    assert code == 422


async def test_binding_of_another_pod(api: EmbeddedApi) -> None:
    """Who decided for a pod that has gone binds no other one of its name."""
    await run(api, "c")
    metadata = {"name": "p", "uid": "another", "annotations": {"x": "y"}}

    code, status = await api.call("POST", f"{PODS}/p/binding", {"metadata": metadata, "target": {"name": "n"}})

    assert (code, status["reason"]) == (409, "Conflict")
    assert "annotations" not in (await api.get(f"{PODS}/p"))["metadata"]


@pytest.mark.parametrize(
    "path", [f"{PODS}/p/binding", "/api/v1/namespaces/default/bindings"], ids=["of the pod", "alone"]
)
async def test_binding(api: EmbeddedApi, path: str) -> None:
    """A pod is bound once, with the annotations of the Binding."""
    await run(api, "c")
    binding = {"metadata": {"name": "p", "annotations": {"x": "y"}}, "target": {"kind": "Node", "name": "n"}}
    assert (await api.call("POST", path, binding))[0] == 201
    pod = await api.get(f"{PODS}/p")
    assert (pod["spec"]["nodeName"], pod["metadata"]["annotations"]) == ("n", {"x": "y"})
    assert [each["type"] for each in pod["status"]["conditions"]] == ["PodScheduled"]
    code, status = await api.call("POST", path, binding)
    assert code == 409
    assert status["message"].endswith('pod p is already assigned to node "n"')


@pytest.mark.parametrize(
    ("allowed", "code"), [pytest.param(0, 429, id="would violate the budget"), pytest.param(1, 201, id="allowed")]
)
async def test_eviction(api: EmbeddedApi, allowed: int, code: int) -> None:
    """A budget that allows no disruption keeps the pod."""
    await run(api, "c")
    await api.create(
        BUDGETS, {"metadata": {"name": "b"}, "spec": {"minAvailable": 1, "selector": {"matchLabels": {"a": "b"}}}}
    )
    status = {"status": {"disruptionsAllowed": allowed, "currentHealthy": 1, "desiredHealthy": 1, "expectedPods": 1}}
    await api.call("PATCH", f"{BUDGETS}/b/status", status, kind=MERGE)
    assert (await api.call("POST", f"{PODS}/p/eviction", {"metadata": {"name": "p"}}))[0] == code
    assert (await api.call("GET", f"{PODS}/p"))[0] == (404 if code == 201 else 200)


async def test_log(api: EmbeddedApi) -> None:
    """Logs come from the kubelet that the node names, with what the client asked for."""
    endpoints = {
        "daemonEndpoints": {"kubeletEndpoint": {"Port": 7}},
        "addresses": [{"type": "InternalIP", "address": "10.1.2.3"}],
    }
    await api.create("/api/v1/nodes", {"metadata": {"name": "n"}, "status": endpoints})
    await run(api, "c", nodeName="n")
    assert await api.call("GET", f"{PODS}/p/log?tailLines=5") == (200, b"a line\n")
    assert api.fetched == ["https://10.1.2.3:7/containerLogs/default/p/c?tailLines=5"]


@pytest.mark.parametrize(
    ("query", "message"),
    [
        pytest.param("", "a container name must be specified for pod p, choose one of: [a b]", id="which of two"),
        pytest.param("?container=x", "container x is not valid for pod p", id="no such container"),
    ],
)
async def test_log_refused(api: EmbeddedApi, query: str, message: str) -> None:
    """Of several containers one must be named."""
    await run(api, "a", "b")
    code, status = await api.call("GET", f"{PODS}/p/log{query}")
    assert (code, status["message"]) == (400, message)


async def test_log_of_a_pod_without_node(api: EmbeddedApi) -> None:
    """A pod that waits for a node has said nothing yet."""
    await run(api, "c")
    assert await api.call("GET", f"{PODS}/p/log") == (200, b"")


@pytest.mark.parametrize(
    ("door", "instead"),
    [
        pytest.param("exec?command=ls", "kubectl logs -n default p -c c", id="exec"),
        pytest.param("attach", "kubectl logs -n default p -c c", id="attach"),
        pytest.param("portforward", "kubectl logs -n default p", id="port-forward"),
    ],
)
async def test_not_served(api: EmbeddedApi, door: str, instead: str) -> None:
    """What needs a connection into a pod is refused, with what to type instead; first of all as any server does."""
    await run(api, "c")
    code, status = await api.call("POST", f"{PODS}/p/{door}")
    assert (code, status["message"]) == (400, "pod p does not have a host assigned")

    await api.call("POST", f"{PODS}/p/binding", {"target": {"name": "n"}})
    code, status = await api.call("POST", f"{PODS}/p/{door}")
    assert code == 501
    assert status["message"].endswith(f"what a container was given, and prints, is in `{instead}`")


async def test_exec_into_no_container(api: EmbeddedApi) -> None:
    """A wrong name is told before anything else."""
    await run(api, "c")
    code, status = await api.call("POST", f"{PODS}/p/exec?container=x")
    assert (code, status["message"]) == (400, "container x is not valid for pod p")


async def test_log_of_a_node_that_is_gone(api: EmbeddedApi) -> None:
    """In a real server's words, which takes the node for a pod."""
    await run(api, "c")
    await api.call("POST", f"{PODS}/p/binding", {"target": {"name": "gone"}})
    code, status = await api.call("GET", f"{PODS}/p/log")
    assert (code, status["message"]) == (404, 'pods "gone" not found')


@pytest.mark.parametrize(
    ("door", "body", "code", "message"),
    [
        pytest.param("binding", {"target": {}}, 500, "target.name: Required value", id="no node"),
        pytest.param(
            "binding", {"target": {"kind": "Pod", "name": "n"}}, 500, 'values: "Node", "<empty>"', id="no kind of node"
        ),
        pytest.param("binding", {"metadata": {"name": "q"}}, 400, "name in Binding object", id="another pod's binding"),
        pytest.param(
            "eviction", {"metadata": {"name": "q"}}, 400, "name in Eviction object", id="another pod's eviction"
        ),
    ],
)
async def test_refused(api: EmbeddedApi, door: str, body: dict, code: int, message: str) -> None:
    """The pod stays where it is."""
    await run(api, "c")
    found, status = await api.call("POST", f"{PODS}/p/{door}", body)
    assert (found, message in status["message"]) == (code, True)
    assert "nodeName" not in (await api.get(f"{PODS}/p"))["spec"]
