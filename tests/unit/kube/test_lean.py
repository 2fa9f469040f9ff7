"""The light client against a server that misbehaves."""

import asyncio
import contextlib
import json
from pathlib import Path

import pytest

from gpushare.domain import manifests
from gpushare.errors import ClusterRefused, ClusterUnavailable, Expired, UsageError
from gpushare.kube.credentials import Credentials
from gpushare.kube.lean import LeanCluster
from support.scripted import HangUpError, ScriptedServer, Seen, answer, chunked

NODE = {"kind": "Node", "metadata": {"name": "gpu01"}}


def line(type_: str, version: str) -> bytes:
    return json.dumps({"type": type_, "object": {"metadata": {"resourceVersion": version}}}).encode() + b"\n"


@contextlib.asynccontextmanager
async def serving(*scripts, **credentials):
    async with ScriptedServer(list(scripts)).running() as server:
        cluster = LeanCluster(Credentials(server=server.url, **credentials))
        try:
            yield server, cluster
        finally:
            await cluster.close()


async def test_keep_alive() -> None:
    """One request after the other goes over one connection."""
    async with serving(answer(NODE)) as (server, cluster):
        for _ in range(3):
            assert await cluster.get(manifests.NODE, "gpu01") == NODE

    assert server.connections == 1


async def test_many_at_once() -> None:
    """Requests do not wait for each other, up to the limit."""
    gate = asyncio.Barrier(3)

    async def together(seen: Seen, writer: asyncio.StreamWriter) -> None:
        await gate.wait()
        await answer(NODE)(seen, writer)

    async with ScriptedServer([together]).running() as server:
        cluster = LeanCluster(Credentials(server=server.url), concurrency=3)
        await asyncio.gather(*(cluster.get(manifests.NODE, "gpu01") for _ in range(6)))
        await cluster.close()

    assert server.connections == 3


async def test_closed_while_idle() -> None:
    """A connection that the server has closed meanwhile is not used again."""
    async with serving(answer(NODE)) as (server, cluster):
        await cluster.get(manifests.NODE, "gpu01")
        server.hang_up()
        while not (await asyncio.sleep(0.001), server._writers == set())[1]:
            pass
        await asyncio.sleep(0.01)

        assert await cluster.get(manifests.NODE, "gpu01") == NODE
        assert server.connections == 2


@pytest.mark.parametrize(
    "script",
    [
        pytest.param(chunked(b'{"kind":', whole=False), id="in the middle of the body"),
        pytest.param(answer(b"<html>"), id="no JSON"),
        pytest.param(answer({"kind": "Status", "message": "not yet"}, 503), id="not ready"),
    ],
)
async def test_unavailable(script) -> None:
    """Whatever breaks on the way is worth another try, and says so."""
    async with serving(script) as (_, cluster):
        with pytest.raises(ClusterUnavailable):
            await cluster.get(manifests.NODE, "gpu01")


async def test_cut_off() -> None:
    """A server that hangs up instead of answering is said to have done so."""

    async def hang_up(*_: object) -> None:
        raise HangUpError

    async with serving(hang_up) as (_, cluster):
        with pytest.raises(ClusterUnavailable, match="closed the connection in the middle of an answer"):
            await cluster.get(manifests.NODE, "gpu01")


async def test_nobody_there() -> None:
    """A refused connection names the server, and says it in the words that people know."""
    cluster = LeanCluster(Credentials(server="http://127.0.0.1:1"))

    with pytest.raises(ClusterUnavailable, match=r"127\.0\.0\.1:1: Connection refused$"):
        await cluster.get(manifests.NODE, "gpu01")


async def test_hang_up_before_the_answer() -> None:
    """A server that dies under a request is unavailable, not a crash."""

    async def die(seen: Seen, writer: asyncio.StreamWriter) -> None:
        raise HangUpError

    async with serving(die) as (_, cluster):
        with pytest.raises(ClusterUnavailable):
            await cluster.get(manifests.NODE, "gpu01")


async def test_new_token_after_401(tmp_path: Path) -> None:
    """A token that was replaced in its file is read again the moment the server refuses the old one."""
    file = tmp_path / "token"
    file.write_text("old")

    async def guarded(seen: Seen, writer: asyncio.StreamWriter) -> None:
        file.write_text("new")
        code = 200 if seen.headers["authorization"] == "Bearer new" else 401
        await answer(NODE, code)(seen, writer)

    async with serving(guarded, token_file=file) as (server, cluster):
        assert await cluster.get(manifests.NODE, "gpu01") == NODE

    assert len(server.requests) == 2


async def test_pages() -> None:
    """A list is read page by page, and its items say what they are."""
    pages = [
        answer({"metadata": {"continue": "next"}, "items": [{"metadata": {"name": "a"}}]}),
        answer({"metadata": {"resourceVersion": "9"}, "items": [{"metadata": {"name": "b"}}]}),
    ]
    async with serving(*pages) as (server, cluster):
        listed = await cluster.list(manifests.NODE)

    assert [(item["kind"], item["metadata"]["name"]) for item in listed.items] == [("Node", "a"), ("Node", "b")]
    assert listed.resource_version == "9"
    assert "continue=next" in server.requests[1].line


async def test_expired_page() -> None:
    """Where the second page has expired, everything is read again at once."""
    scripts = [
        answer({"metadata": {"continue": "next"}, "items": [{"metadata": {"name": "a"}}]}),
        answer({"kind": "Status", "message": "too old"}, 410),
        answer({"metadata": {"resourceVersion": "9"}, "items": []}),
    ]
    async with serving(*scripts) as (server, cluster):
        assert (await cluster.list(manifests.NODE)).items == ()

    assert "limit" not in server.requests[2].line


@pytest.mark.parametrize(
    "body",
    [
        pytest.param({"kind": "Table", "rows": [{"cells": ["a", "1d"]}, {"cells": ["b", "2d"]}]}, id="table"),
        pytest.param({"kind": "NodeList", "items": [{"metadata": {"name": n}} for n in "ab"]}, id="list"),
    ],
)
async def test_names(body: dict) -> None:
    """Names come from a table, or from the list where the server makes no table."""
    async with serving(answer(body)) as (server, cluster):
        assert await cluster.names(manifests.NODE) == {"a", "b"}

    assert "as=Table" in server.requests[0].headers["accept"]


async def test_watch_cut_anywhere() -> None:
    """Events arrive whole, however the server cuts its stream."""
    data = line("ADDED", "1") + line("BOOKMARK", "2")
    async with serving(chunked(data[:10], data[10:50], data[50:])) as (_, cluster):
        events = [event async for event in cluster.watch(manifests.NODE, resource_version="0")]

    assert [(event.type, event.resource_version) for event in events] == [("ADDED", "1"), ("BOOKMARK", "2")]


@pytest.mark.parametrize(
    ("script", "error"),
    [
        pytest.param(answer({"kind": "Status"}, 410), Expired, id="refused as too old"),
        pytest.param(
            chunked(b'{"type": "ERROR", "object": {"kind": "Status", "code": 410}}\n'), Expired, id="too old later"
        ),
        pytest.param(answer({"kind": "Status"}, 403), ClusterRefused, id="forbidden"),
        pytest.param(chunked(line("ADDED", "1"), whole=False), ClusterUnavailable, id="broken"),
    ],
)
async def test_watch_fails(script, error: type[Exception]) -> None:
    """Each way in which a watch ends badly has its own error."""
    async with serving(script) as (_, cluster):
        with pytest.raises(error):
            _ = [event async for event in cluster.watch(manifests.NODE, resource_version="0")]


async def test_close_ends_a_watch() -> None:
    """Closing the client ends a watch that waits for its next event."""
    async with serving(chunked(line("ADDED", "1"), then=asyncio.Event().wait)) as (_, cluster):
        events = cluster.watch(manifests.NODE, resource_version="0")
        await anext(events)
        waiting = asyncio.ensure_future(anext(events))
        await asyncio.sleep(0)

        await cluster.close()

        with pytest.raises(ClusterUnavailable):
            await waiting
        with pytest.raises(ClusterUnavailable, match="closed"):
            await cluster.get(manifests.NODE, "gpu01")


@pytest.mark.parametrize("server", ["no url", "https://"])
def test_no_url(server: str) -> None:
    """An address that is none is refused when the client is made."""
    with pytest.raises(UsageError, match="expected https://host:port"):
        LeanCluster(Credentials(server=server))
