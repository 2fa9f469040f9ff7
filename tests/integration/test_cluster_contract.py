"""What every `Cluster` does, on both clients, against the embedded API server."""

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import yaml

from gpushare.domain import manifests
from gpushare.errors import ClusterRefused, ClusterUnavailable, Conflict, Expired
from gpushare.kube.client import FullCluster
from gpushare.kube.cluster import Cluster, EventType, PatchType
from gpushare.kube.credentials import Credentials, from_kubeconfig
from gpushare.kube.lean import LeanCluster
from gpushare.kube.watching import Changed, Synced, follow
from gpushare.sandbox.apiserver.server import ApiServer, Settings

LOG = logging.getLogger("test")
NAMESPACE = "default"


@pytest.fixture
async def server() -> AsyncIterator[ApiServer]:
    server = await ApiServer.start(Settings())
    yield server
    await server.stop()


def credentials(server: ApiServer, folder: Path, user: str = "admin") -> Credentials:
    path = folder / f"{user}.yaml"
    path.write_text(yaml.safe_dump(server.kubeconfig(user)))
    return from_kubeconfig(path)


@pytest.fixture(params=[pytest.param(LeanCluster, id="lean"), pytest.param(FullCluster, id="full")])
def client(request: pytest.FixtureRequest) -> type[LeanCluster | FullCluster]:
    return request.param


@pytest.fixture
async def cluster(server: ApiServer, client, tmp_path: Path) -> AsyncIterator[Cluster]:
    cluster = client(credentials(server, tmp_path))
    yield cluster
    await cluster.close()


def config_map(name: str, **data: str) -> dict:
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": name, "namespace": NAMESPACE},
        "data": data,
    }


async def read(cluster: Cluster, name: str) -> dict | None:
    found = await cluster.get(manifests.CONFIG_MAP, name, NAMESPACE)
    return found and found.get("data")


async def test_user_agent(server: ApiServer, tmp_path: Path) -> None:
    """A write that names no manager is put down to the program that its client says it is, where it says that."""
    cluster = LeanCluster(credentials(server, tmp_path), user_agent="kube-scheduler")
    created = await cluster.create(config_map("a", x="1"))
    await cluster.close()

    assert [entry["manager"] for entry in created["metadata"]["managedFields"]] == ["kube-scheduler"]


async def test_create_get_delete(cluster: Cluster) -> None:
    """An object comes, is read, and goes; what is not there is None and False."""
    created = await cluster.create(config_map("a", x="1"))

    assert created["metadata"]["uid"]
    assert await read(cluster, "a") == {"x": "1"}
    assert await cluster.delete(manifests.CONFIG_MAP, "a", NAMESPACE)
    assert await read(cluster, "a") is None
    assert not await cluster.delete(manifests.CONFIG_MAP, "a", NAMESPACE)


async def test_create_twice(cluster: Cluster) -> None:
    """What exists already is a conflict."""
    await cluster.create(config_map("a"))

    with pytest.raises(Conflict, match='"a" already exists'):
        await cluster.create(config_map("a"))


async def test_delete_by_uid(cluster: Cluster) -> None:
    """An object that was replaced under the same name is not the one that was meant."""
    created = await cluster.create(config_map("a"))

    assert not await cluster.delete(manifests.CONFIG_MAP, "a", NAMESPACE, uid="another")
    assert await cluster.delete(manifests.CONFIG_MAP, "a", NAMESPACE, uid=created["metadata"]["uid"])


async def test_apply(cluster: Cluster) -> None:
    """Server-side apply: create, change, refuse what another owns, take it by force, give up what is left out."""
    await cluster.apply(config_map("a", x="1", y="1"), manager="one")
    await cluster.apply(config_map("a", x="1"), manager="one")
    assert await read(cluster, "a") == {"x": "1"}

    with pytest.raises(Conflict, match='conflict with "one"'):
        await cluster.apply(config_map("a", x="2"), manager="two")
    await cluster.apply(config_map("a", x="2"), manager="two", force=True)
    assert await read(cluster, "a") == {"x": "2"}


async def test_null(cluster: Cluster) -> None:
    """A null among texts is stored as an empty one. (`kubectl apply` leaves it out before it sends anything.)"""
    await cluster.create({**config_map("a"), "data": {"x": None}})
    await cluster.apply({**config_map("b"), "data": {"x": None}}, manager="one")
    assert await read(cluster, "a") == await read(cluster, "b") == {"x": ""}

    await cluster.patch(manifests.CONFIG_MAP, "a", [{"op": "add", "path": "/data/y", "value": None}], NAMESPACE,
                        patch_type=PatchType.JSON)  # fmt: skip
    assert await read(cluster, "a") == {"x": "", "y": ""}


async def test_apply_nothing_new(cluster: Cluster) -> None:
    """An apply that changes nothing leaves the version alone."""
    first = await cluster.apply(config_map("a", x="1"), manager="one")
    second = await cluster.apply(config_map("a", x="1"), manager="one")

    assert first["metadata"]["resourceVersion"] == second["metadata"]["resourceVersion"]


@pytest.mark.parametrize(
    ("patch_type", "body"),
    [
        pytest.param(PatchType.MERGE, {"data": {"x": None, "y": "2"}}, id="merge"),
        pytest.param(PatchType.STRATEGIC, {"data": {"x": None, "y": "2"}}, id="strategic"),
        pytest.param(
            PatchType.JSON,
            [{"op": "remove", "path": "/data/x"}, {"op": "add", "path": "/data/y", "value": "2"}],
            id="JSON",
        ),
    ],
)
async def test_patch(cluster: Cluster, patch_type: PatchType, body: object) -> None:
    """All three kinds of patch."""
    await cluster.create(config_map("a", x="1"))

    await cluster.patch(manifests.CONFIG_MAP, "a", body, NAMESPACE, patch_type=patch_type)

    assert await read(cluster, "a") == {"y": "2"}
    assert await cluster.patch(manifests.CONFIG_MAP, "b", body, NAMESPACE, patch_type=patch_type) is None


async def test_replace(cluster: Cluster) -> None:
    """A replacement counts only for the version that was read."""
    old = await cluster.create(config_map("a", x="1"))
    await cluster.replace({**old, "data": {"x": "2"}})

    with pytest.raises(Conflict):
        await cluster.replace({**old, "data": {"x": "3"}})


async def test_status(cluster: Cluster) -> None:
    """A status goes through its own door, by patch and by apply."""
    await cluster.create({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n"}})

    await cluster.patch(manifests.NODE, "n", {"status": {"capacity": {"cpu": "2"}}}, subresource="status")
    applied = await cluster.apply(
        {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n"}, "status": {"capacity": {"memory": "1Gi"}}},
        manager="one",
        subresource="status",
    )

    assert applied["status"]["capacity"] == {"cpu": "2", "memory": "1Gi"}


async def test_token(cluster: Cluster, server: ApiServer, client) -> None:
    """A token of a ServiceAccount is created through its subresource, and opens the door as that account."""
    await cluster.create(
        {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "sa", "namespace": NAMESPACE}}
    )
    request = {
        "apiVersion": "authentication.k8s.io/v1",
        "kind": "TokenRequest",
        "metadata": {"namespace": NAMESPACE},
        "spec": {"audiences": [], "expirationSeconds": 3600},
    }
    answer = await cluster.create(request, subresource="token", name="sa")

    other = client(Credentials(server=server.url, ca=server.ca_pem, token=answer["status"]["token"]))
    try:
        with pytest.raises(ClusterRefused, match="system:serviceaccount:default:sa") as refused:
            await other.list(manifests.NODE)
    finally:
        await other.close()
    assert refused.value.code == 403


async def test_list(cluster: Cluster) -> None:
    """Lists in pages, with selectors; items say what they are, and names come alone."""
    names = {f"cm-{n:04}" for n in range(520)}
    await asyncio.gather(*(cluster.create(config_map(name)) for name in names))
    labelled = config_map("labelled")
    labelled["metadata"]["labels"] = {"a": "b"}
    await cluster.create(labelled)

    everything = await cluster.list(manifests.CONFIG_MAP, NAMESPACE)
    by_label = await cluster.list(manifests.CONFIG_MAP, labels="a=b")
    by_field = await cluster.list(manifests.CONFIG_MAP, fields="metadata.name=cm-0007")

    assert names < {item["metadata"]["name"] for item in everything.items}
    assert {(item["apiVersion"], item["kind"]) for item in everything.items} == {("v1", "ConfigMap")}
    assert [item["metadata"]["name"] for item in by_label.items] == ["labelled"]
    assert [item["metadata"]["name"] for item in by_field.items] == ["cm-0007"]
    assert await cluster.names(manifests.CONFIG_MAP, NAMESPACE) == names | {"labelled", "kube-root-ca.crt"}


async def test_unknown_kind(cluster: Cluster) -> None:
    """A kind that the server does not have is an error with 404, never an empty answer."""
    for attempt in (cluster.get(manifests.GPU_CLUSTER, "x"), cluster.list(manifests.GPU_CLUSTER)):
        with pytest.raises(ClusterRefused) as refused:
            await attempt
        assert refused.value.code == 404


async def test_missing_namespace(cluster: Cluster) -> None:
    """Creating in a namespace that is not there names it; reading finds nothing."""
    with pytest.raises(ClusterRefused, match='namespaces "nowhere" not found'):
        await cluster.create({**config_map("a"), "metadata": {"name": "a", "namespace": "nowhere"}})
    assert await cluster.get(manifests.CONFIG_MAP, "a", "nowhere") is None


async def test_invalid(cluster: Cluster) -> None:
    """What the server cannot take is refused with its own words."""
    with pytest.raises(ClusterRefused, match=r"metadata\.name: Invalid value"):
        await cluster.create(config_map("Not A Name"))


async def test_large_object(cluster: Cluster) -> None:
    """An object near the limit of a megabyte comes and goes whole, through a watch too."""
    data = {"text": "ä" + "x" * 900_000}
    version = (await cluster.list(manifests.CONFIG_MAP, NAMESPACE)).resource_version

    await cluster.create(config_map("big", **data))

    assert await read(cluster, "big") == data
    async with contextlib.aclosing(cluster.watch(manifests.CONFIG_MAP, NAMESPACE, resource_version=version)) as events:
        event = await anext(events)
    assert event.object["data"] == data


async def test_watch(cluster: Cluster) -> None:
    """Every change after the given version, in order."""
    version = (await cluster.list(manifests.CONFIG_MAP, NAMESPACE)).resource_version
    await cluster.create(config_map("a", x="1"))
    await cluster.patch(manifests.CONFIG_MAP, "a", {"data": {"x": "2"}}, NAMESPACE)
    await cluster.delete(manifests.CONFIG_MAP, "a", NAMESPACE)

    seen = []
    async with contextlib.aclosing(
        cluster.watch(manifests.CONFIG_MAP, NAMESPACE, fields="metadata.name=a", resource_version=version)
    ) as events:
        async for event in events:
            seen.append(event.type)
            if event.type is EventType.DELETED:
                break

    assert seen == [EventType.ADDED, EventType.MODIFIED, EventType.DELETED]


async def test_forbidden(server: ApiServer, client, tmp_path: Path) -> None:
    """What a user may not do is refused with a text that names user, verb and resource."""
    cluster = client(credentials(server, tmp_path, "nobody"))
    try:
        with pytest.raises(ClusterRefused, match='User "nobody" cannot list resource "nodes"') as refused:
            await cluster.list(manifests.NODE)
    finally:
        await cluster.close()
    assert refused.value.code == 403


async def test_unknown_token(server: ApiServer, client) -> None:
    """A wrong token is refused as such."""
    cluster = client(Credentials(server=server.url, ca=server.ca_pem, token="nonsense"))
    try:
        with pytest.raises(ClusterRefused) as refused:
            await cluster.list(manifests.NODE)
    finally:
        await cluster.close()
    assert refused.value.code == 401


async def test_rotated_token(server: ApiServer, client, tmp_path: Path) -> None:
    """A token file that is replaced works on without a failed request."""
    file = tmp_path / "token"
    file.write_text("run out")
    cluster = client(Credentials(server=server.url, ca=server.ca_pem, token_file=file))
    with pytest.raises(ClusterRefused):
        await cluster.list(manifests.NODE)

    file.write_text(server.token())

    assert await cluster.list(manifests.NODE)
    await cluster.close()


async def test_untrusted(server: ApiServer, client) -> None:
    """A server with another certificate is not talked to."""
    cluster = client(Credentials(server=server.url, token=server.token()))
    try:
        with pytest.raises(ClusterUnavailable, match="certificate"):
            await cluster.list(manifests.NODE)
    finally:
        await cluster.close()


async def test_server_restart(server: ApiServer, cluster: Cluster) -> None:
    """While the server is away, every request says so; afterwards the same client goes on."""
    await cluster.create(config_map("a"))
    await server.pause()
    with pytest.raises(ClusterUnavailable):
        await read(cluster, "a")

    await server.resume()

    assert await cluster.get(manifests.CONFIG_MAP, "a", NAMESPACE)


async def test_follow_through_a_restart(server: ApiServer, cluster: Cluster) -> None:
    """Whoever follows a kind misses nothing when the server restarts, though it forbids everything at first."""
    stream = follow(cluster, manifests.CONFIG_MAP, NAMESPACE, fields="metadata.name=a", log=LOG)
    assert await anext(stream) == Synced(())
    created = asyncio.ensure_future(anext(stream))
    await cluster.create(config_map("a", x="1"))
    assert isinstance(await created, Changed)

    following = asyncio.ensure_future(anext(stream))
    await server.pause()
    await server.resume(busy=0.2)
    while True:
        with contextlib.suppress(ClusterUnavailable):
            await cluster.patch(manifests.CONFIG_MAP, "a", {"data": {"x": "2"}}, NAMESPACE)
            break
        await asyncio.sleep(0.05)

    change = await following
    while {"x": "2"} not in data_of(change):
        change = await anext(stream)
    await stream.aclose()


def data_of(change: Synced | Changed) -> list[dict]:
    """A server that has restarted may not know what was before, so that one is told by a new list."""
    objects = change.items if isinstance(change, Synced) else (change.event.object,)
    return [obj["data"] for obj in objects]


async def test_watch_from_before_a_restart(server: ApiServer, cluster: Cluster) -> None:
    """What a server that has restarted does not remember is Expired."""
    version = (await cluster.list(manifests.CONFIG_MAP, NAMESPACE)).resource_version
    await cluster.create(config_map("a", x="1"))

    await server.pause()
    with pytest.raises(ClusterUnavailable):
        await read(cluster, "a")
    await server.resume()

    with pytest.raises(Expired):
        async for _ in cluster.watch(manifests.CONFIG_MAP, NAMESPACE, resource_version=version):
            pass
