"""What goes when something else goes, and what comes back."""

import pytest

from support.embedded_api import MERGE, EmbeddedApi

MAPS = "/api/v1/namespaces/default/configmaps"
PODS = "/api/v1/namespaces/default/pods"


async def own(api: EmbeddedApi, owner: str, *names: str) -> None:
    """ConfigMaps that belong to another one."""
    created = await api.create(MAPS, {"metadata": {"name": owner}})
    reference = {"apiVersion": "v1", "kind": "ConfigMap", "name": owner, "uid": created["metadata"]["uid"]}
    for name in names:
        await api.create(MAPS, {"metadata": {"name": name, "ownerReferences": [reference]}})


async def names(api: EmbeddedApi, path: str = MAPS) -> list[str]:
    return [
        item["metadata"]["name"] for item in (await api.get(path))["items"] if "kube" not in item["metadata"]["name"]
    ]


@pytest.mark.parametrize(
    ("policy", "left"),
    [
        pytest.param("Background", [], id="background"),
        pytest.param("Foreground", [], id="foreground"),
        pytest.param("Orphan", ["b", "c"], id="orphan"),
    ],
)
async def test_owner_goes(api: EmbeddedApi, policy: str, left: list[str]) -> None:
    """Dependents go with their owner, unless they are orphaned."""
    await own(api, "a", "b", "c")
    await api.call("DELETE", f"{MAPS}/a", {"propagationPolicy": policy})
    assert await names(api) == left
    for name in left:
        assert "ownerReferences" not in (await api.get(f"{MAPS}/{name}"))["metadata"]


async def test_foreground_waits(api: EmbeddedApi) -> None:
    """In the foreground, the owner stays until the last dependent is gone."""
    await own(api, "a", "b")
    await api.call("PATCH", f"{MAPS}/b", {"metadata": {"finalizers": ["x.io/wait"]}}, kind=MERGE)
    await api.call("DELETE", f"{MAPS}/a", {"propagationPolicy": "Foreground"})
    assert await names(api) == ["a", "b"]
    await api.call("PATCH", f"{MAPS}/b", {"metadata": {"finalizers": None}}, kind=MERGE)
    assert await names(api) == []


async def test_unknown_owner(api: EmbeddedApi) -> None:
    """Whoever belongs to what never was goes."""
    reference = {"apiVersion": "v1", "kind": "ConfigMap", "name": "never", "uid": "x"}
    await api.create(MAPS, {"metadata": {"name": "a", "ownerReferences": [reference]}})
    assert await names(api) == []


async def test_one_owner_left(api: EmbeddedApi) -> None:
    """With two owners, the last one counts."""
    await own(api, "a", "c")
    await own(api, "b")
    other = (await api.get(f"{MAPS}/b"))["metadata"]["uid"]
    references = (await api.get(f"{MAPS}/c"))["metadata"]["ownerReferences"]
    references.append({"apiVersion": "v1", "kind": "ConfigMap", "name": "b", "uid": other})
    await api.call("PATCH", f"{MAPS}/c", {"metadata": {"ownerReferences": references}}, kind=MERGE)
    await api.call("DELETE", f"{MAPS}/a")
    assert [each["name"] for each in (await api.get(f"{MAPS}/c"))["metadata"]["ownerReferences"]] == ["b"]
    await api.call("DELETE", f"{MAPS}/b")
    assert await names(api) == []


async def test_namespace_is_furnished(api: EmbeddedApi) -> None:
    """Every namespace has its root certificate and its account, also after they were deleted."""
    await api.create("/api/v1/namespaces", {"metadata": {"name": "x"}})
    for path in ("configmaps/kube-root-ca.crt", "serviceaccounts/default"):
        assert await api.get(f"/api/v1/namespaces/x/{path}")
        await api.call("DELETE", f"/api/v1/namespaces/x/{path}")
        assert await api.get(f"/api/v1/namespaces/x/{path}")


async def test_namespace_ends_slowly(api: EmbeddedApi) -> None:
    """A finalizer of what is in it holds a namespace, in which nothing new may be created."""
    maps = "/api/v1/namespaces/x/configmaps"
    await api.create("/api/v1/namespaces", {"metadata": {"name": "x"}})
    await api.create(maps, {"metadata": {"name": "a", "finalizers": ["x.io/wait"]}})
    await api.call("DELETE", "/api/v1/namespaces/x")
    assert (await api.get("/api/v1/namespaces/x"))["status"]["phase"] == "Terminating"
    code, status = await api.call("POST", maps, {"metadata": {"name": "b"}})
    assert code == 403
    assert status["message"] == (
        'configmaps "b" is forbidden: unable to create new content in namespace x because it is being terminated'
    )
    await api.call("PATCH", f"{maps}/a", {"metadata": {"finalizers": None}}, kind=MERGE)
    assert (await api.call("GET", "/api/v1/namespaces/x"))[0] == 404


@pytest.mark.parametrize(
    ("spec", "options", "left"),
    [
        pytest.param({}, None, False, id="never ran"),
        pytest.param({"nodeName": "n"}, None, True, id="running"),
        pytest.param({"nodeName": "n"}, {"gracePeriodSeconds": 0}, False, id="at once"),
        pytest.param({"nodeName": "n", "terminationGracePeriodSeconds": 0}, None, False, id="no grace"),
    ],
)
async def test_pod_ends(api: EmbeddedApi, spec: dict, options: dict | None, left: bool) -> None:
    """A pod that runs is left to its kubelet for its grace period."""
    await api.create(PODS, {"metadata": {"name": "p"}, "spec": {"containers": [{"name": "c", "image": "i"}], **spec}})
    await api.call("DELETE", f"{PODS}/p", options)
    code, pod = await api.call("GET", f"{PODS}/p")
    assert (code == 200) is left
    if left:
        assert pod["metadata"]["deletionGracePeriodSeconds"] == 30
        await api.call("DELETE", f"{PODS}/p", {"gracePeriodSeconds": 0})
        assert (await api.call("GET", f"{PODS}/p"))[0] == 404
