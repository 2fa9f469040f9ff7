"""The server over its sockets: TLS, restarts, logs of kubelets, and many objects with many watches."""

import asyncio
import contextlib
import json
import logging
import ssl
from asyncio.subprocess import PIPE, STDOUT
from collections.abc import AsyncIterator
from pathlib import Path

import aiohttp
import pytest

from gpushare.domain import manifests
from gpushare.domain.manifests import Manifest
from gpushare.errors import ClusterRefused, ClusterUnavailable
from gpushare.kube.cluster import Cluster
from gpushare.kube.credentials import Credentials
from gpushare.kube.lean import LeanCluster
from gpushare.kube.watching import Changed, Synced, follow
from gpushare.sandbox.apiserver.server import ApiServer, Settings
from gpushare.sandbox.tour import engine
from support.standin_kubelets import serving_logs

LOG = logging.getLogger("test")


@pytest.fixture
async def server() -> AsyncIterator[ApiServer]:
    server = await ApiServer.start(Settings())
    yield server
    await server.stop()


@pytest.fixture
async def connect(server: ApiServer) -> AsyncIterator:
    """Clients of any user."""
    clusters: list[LeanCluster] = []

    def connect(user: str = "admin", groups: tuple[str, ...] = ()) -> Cluster:
        token = server.token(user, groups)
        clusters.append(LeanCluster(Credentials(server=server.url, ca=server.ca_pem, token=token)))
        return clusters[-1]

    yield connect
    for cluster in clusters:
        await cluster.close()


async def read(server: ApiServer, path: str) -> str:
    """The text of an answer to the admin."""
    tls = ssl.create_default_context(cadata=server.ca_pem)
    headers = {"Authorization": f"Bearer {server.token()}"}
    async with aiohttp.ClientSession() as session, session.get(server.url + path, ssl=tls, headers=headers) as answer:
        return await answer.text()


def config_map(name: str) -> manifests.Manifest:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": "default"}}


async def test_stops_twice() -> None:
    """Stopping a server that is stopped does nothing, and its port is free again."""
    server = await ApiServer.start(Settings())
    port = server.port
    await server.stop()
    await server.stop()
    again = await ApiServer.start(Settings(port=port))
    await again.stop()


async def test_stops_during_a_handshake(server: ApiServer) -> None:
    """Whoever was accepted before, and says who it is only afterwards, is not answered any more."""
    reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
    await read(server, "/version")  # who has come later than the first is through
    await server.stop()
    with contextlib.suppress(OSError):
        await writer.start_tls(ssl.create_default_context(cadata=server.ca_pem), server_hostname="localhost")
        writer.write(b"GET /version HTTP/1.1\r\nHost: a\r\n\r\n")
        assert await reader.read(100) == b""
    writer.transport.abort()


async def test_port_taken(server: ApiServer) -> None:
    """A port that is taken is the caller's to know."""
    with pytest.raises(OSError, match="address already in use"):
        await ApiServer.start(Settings(port=server.port))


async def test_restart(server: ApiServer, connect) -> None:
    """A server that comes back forbids everything to all but masters, is busy, then goes on with all that it had."""
    admin, node = connect(), connect("system:node:n", ("system:nodes",))
    await admin.create(config_map("a"))
    await server.pause()
    with pytest.raises(ClusterUnavailable):
        await admin.list(manifests.NODE)
    await server.resume(forbidden=30.0)
    assert await admin.list(manifests.NODE)
    with pytest.raises(ClusterRefused) as refused:
        await node.list(manifests.NODE)
    assert refused.value.code == 403
    server.api.trouble.begin(forbidden=0.0, busy=30.0)
    with pytest.raises(ClusterUnavailable, match="initializing"):
        await node.list(manifests.NODE)
    server.api.trouble.begin(forbidden=0.0, busy=0.0)
    assert await node.list(manifests.NODE)
    assert await admin.get(manifests.CONFIG_MAP, "a", "default")


async def test_watch_survives_restart(server: ApiServer, connect) -> None:
    """Whoever follows a kind learns after a restart what happened since."""
    admin = connect()
    changes = follow(connect(), manifests.CONFIG_MAP, "default", log=LOG)
    assert isinstance(await anext(changes), Synced)
    await server.pause()
    await server.resume()
    await admin.create(config_map("a"))
    seen: list[str] = []
    async for change in changes:
        objects = change.items if isinstance(change, Synced) else (change.event.object,)
        seen += [obj["metadata"]["name"] for obj in objects]
        if "a" in seen:
            break
    await changes.aclose()


async def test_clients_go(server: ApiServer, connect, monkeypatch: pytest.MonkeyPatch) -> None:
    """A watch whose client has hung up is forgotten at once, not at its next event."""
    store, came, went = server.api.store, asyncio.Event(), asyncio.Event()
    subscribe, unsubscribe = store.subscribe, store.unsubscribe
    monkeypatch.setattr(store, "subscribe", lambda *args: (came.set(), subscribe(*args))[1])
    monkeypatch.setattr(store, "unsubscribe", lambda subscription: (unsubscribe(subscription), went.set()))
    changes = follow(connect(), manifests.CONFIG_MAP, "default", log=LOG)
    assert isinstance(await anext(changes), Synced)
    listening = asyncio.create_task(anext(changes))
    await came.wait()
    listening.cancel()
    await asyncio.gather(listening, return_exceptions=True)
    await changes.aclose()
    await went.wait()


async def test_logs(server: ApiServer, connect) -> None:
    """The log of a pod is what the kubelet of its node answers."""
    admin = connect()
    async with serving_logs(server.authority) as port:
        status = {
            "addresses": [{"type": "InternalIP", "address": "127.0.0.1"}],
            "daemonEndpoints": {"kubeletEndpoint": {"Port": port}},
        }
        await admin.create({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n"}, "status": status})
        spec = {"nodeName": "n", "containers": [{"name": "c", "image": "i"}]}
        await admin.create(
            {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p", "namespace": "default"}, "spec": spec}
        )
        for query in ("", "?follow=true"):
            assert await read(server, f"/api/v1/namespaces/default/pods/p/log{query}") == "log of p\n"


ITEM = {"apiVersion": "apps/v1", "kind": "DaemonSet", "metadata": {"name": "d"}, "spec": {
    "selector": {"matchLabels": {"a": "b"}}, "template": {
        "metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}}}}  # fmt: skip


@pytest.mark.parametrize(
    ("more", "expected"),
    [
        pytest.param({}, "configmap/a created\ndaemonset.apps/d created\n", id="good"),
        pytest.param(
            {"daata": {}},
            'ValidationError(ConfigMap): unknown field "daata" in io.k8s.api.core.v1.ConfigMap',
            id="unknown field",
        ),
        pytest.param(
            {"data": 1},
            'ValidationError(ConfigMap.data): invalid type for io.k8s.api.core.v1.ConfigMap.data: got "integer", '
            'expected "map"',
            id="wrong type",
        ),
    ],
)
async def test_apply_list(server: ApiServer, tmp_path: Path, more: Manifest, expected: str) -> None:
    """kubectl checks the items of a `kind: List` itself, by the OpenAPI v2 document."""
    kubeconfig, manifest = tmp_path / "kubeconfig", tmp_path / "list.json"
    kubeconfig.write_text(json.dumps(server.kubeconfig()))
    manifest.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": [{**config_map("a"), **more}, ITEM]}))
    process = await asyncio.create_subprocess_exec(
        engine.find_kubectl(), "--kubeconfig", kubeconfig, "apply", "-f", manifest, stdout=PIPE, stderr=STDOUT
    )
    output, _ = await process.communicate()
    assert expected in output.decode()


async def test_many(server: ApiServer, connect) -> None:
    """Thousands of objects, and every one of many watches hears of each, in order."""
    admin, number = connect(), 1_000
    watches = [follow(connect(), manifests.CONFIG_MAP, "default", log=LOG) for _ in range(20)]
    for watch in watches:
        assert isinstance(await anext(watch), Synced)

    async def hear(watch) -> list[str]:
        names = []
        async for change in watch:
            assert isinstance(change, Changed)
            names.append(change.event.object["metadata"]["name"])
            if len(names) == number:
                return names
        return names

    hearing = [asyncio.create_task(hear(watch)) for watch in watches]
    for start in range(0, number, 50):
        await asyncio.gather(*(admin.create(config_map(f"m{at}")) for at in range(start, start + 50)))
    heard = await asyncio.gather(*hearing)
    assert sorted(heard[0]) == sorted(f"m{at}" for at in range(number))
    assert all(names == heard[0] for names in heard)
    for watch in watches:
        await watch.aclose()
