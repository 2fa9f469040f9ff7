"""Lists, pages and watches, and the versions at which clients see things."""

import asyncio

import pytest

from gpushare.sandbox.apiserver.storage import Event, Record, Subscription
from support.embedded_api import MERGE, EmbeddedApi

MAPS = "/api/v1/namespaces/default/configmaps"


async def create(api: EmbeddedApi, name: str, **labels: str) -> str:
    """A ConfigMap; its version."""
    created = await api.create(MAPS, {"metadata": {"name": name, "labels": labels}})
    return created["metadata"]["resourceVersion"]


async def version(api: EmbeddedApi) -> str:
    return (await api.get(MAPS))["metadata"]["resourceVersion"]


async def test_items_of_lists(api: EmbeddedApi) -> None:
    """Items of built-in kinds name no kind, as on a real server; a single object does."""
    await create(api, "a")
    found = await api.get(MAPS)
    assert found["kind"] == "ConfigMapList"
    assert all("kind" not in item and "apiVersion" not in item for item in found["items"])
    assert (await api.get(f"{MAPS}/a"))["kind"] == "ConfigMap"


async def test_pages_show_one_moment(api: EmbeddedApi) -> None:
    """A list in pages is that of its first page, whatever happens in between."""
    for name in ("a", "b", "c"):
        await create(api, name)
    first = await api.get(f"{MAPS}?limit=2")
    assert first["metadata"]["remainingItemCount"] == 2
    await create(api, "bb")
    await api.call("DELETE", f"{MAPS}/c")
    rest = await api.get(f"{MAPS}?limit=5&continue={first['metadata']['continue']}")
    names = [item["metadata"]["name"] for item in (*first["items"], *rest["items"])]
    assert names == ["a", "b", "c", "kube-root-ca.crt"]
    assert rest["metadata"] == {"resourceVersion": first["metadata"]["resourceVersion"]}


async def test_exact_version(api: EmbeddedApi) -> None:
    """A list at an exact version is the list as it was then."""
    before = await version(api)
    await create(api, "a")
    found = await api.get(f"{MAPS}?resourceVersion={before}&resourceVersionMatch=Exact")
    assert [item["metadata"]["name"] for item in found["items"]] == ["kube-root-ca.crt"]


@pytest.mark.parametrize(
    ("query", "code", "message"),
    [
        pytest.param("resourceVersion=abc", 400, "invalid resource version", id="no number"),
        pytest.param("resourceVersion=99999", 504, "Too large resource version: 99999", id="from the future"),
        pytest.param("continue=zzz", 400, "continue key is not valid", id="bad page"),
        pytest.param("resourceVersion=1&resourceVersionMatch=Exact", 410, "too old", id="before the server's start"),
    ],
)
async def test_list_refused(api: EmbeddedApi, query: str, code: int, message: str) -> None:
    """A version that makes no sense is refused, never answered with something else."""
    found, status = await api.call("GET", f"{MAPS}?{query}")
    assert found == code
    assert message in status["message"]


async def test_watch_goes_on(api: EmbeddedApi) -> None:
    """A watch from a version tells every change since, and those that follow."""
    since = await create(api, "a")
    await api.call("PATCH", f"{MAPS}/a", {"data": {"x": "1"}}, kind=MERGE)
    watch = await api.watch(f"{MAPS}?watch=1&resourceVersion={since}")
    assert await watch.take(1) == ["MODIFIED a"]
    await api.call("PATCH", f"{MAPS}/a", {"data": {"x": "1"}}, kind=MERGE)
    await api.call("DELETE", f"{MAPS}/a")
    assert await watch.take(1) == ["DELETED a"]
    await watch.close()


async def test_selection(api: EmbeddedApi) -> None:
    """What enters the selection is added, what leaves it is deleted, with the version of that change."""
    since = await create(api, "a")
    watch = await api.watch(f"{MAPS}?watch=1&resourceVersion={since}&labelSelector=on")
    for labels in ({"on": "1"}, {"on": "2"}, {"on": None}):
        await api.call("PATCH", f"{MAPS}/a", {"metadata": {"labels": labels}}, kind=MERGE)
    events = [await watch.next() for _ in range(3)]
    await watch.close()
    assert [kind for kind, _ in events] == ["ADDED", "MODIFIED", "DELETED"]
    assert events[2][1]["metadata"]["labels"] == {"on": "2"}
    assert events[2][1]["metadata"]["resourceVersion"] == await version(api)


async def test_initial_events(api: EmbeddedApi) -> None:
    """A streamed list begins with what is there and says where that ends."""
    await create(api, "a", on="1")
    query = "watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true&labelSelector=on"
    watch = await api.watch(f"{MAPS}?{query}")
    assert await watch.take(1) == ["ADDED a"]
    kind, bookmark = await watch.next()
    await watch.close()
    assert kind == "BOOKMARK"
    assert bookmark["metadata"]["annotations"] == {"k8s.io/initial-events-end": "true"}


async def test_initial_events_need_a_match(api: EmbeddedApi) -> None:
    """A streamed list without resourceVersionMatch is refused."""
    code, status = await api.call("GET", f"{MAPS}?watch=1&sendInitialEvents=true")
    assert code == 422
    assert "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan" in status["message"]


async def test_too_old(api: EmbeddedApi) -> None:
    """A watch from before the server's memory ends at once with Expired."""
    watch = await api.watch(f"{MAPS}?watch=1&resourceVersion=1")
    kind, status = await watch.next()
    assert (kind, status["code"], status["reason"]) == ("ERROR", 410, "Expired")
    assert await watch.rest() == []


async def test_end_of_a_watch(api: EmbeddedApi) -> None:
    """Shortly before its time is over a watch says how far it has come; then it ends."""
    since = await version(api)
    watch = await api.watch(f"{MAPS}?watch=1&resourceVersion={since}&timeoutSeconds=1&allowWatchBookmarks=true")
    assert await watch.rest() == ["BOOKMARK"]


async def test_tables(api: EmbeddedApi) -> None:
    """A watch as a Table sends its columns once."""
    await create(api, "a", on="1")
    accept = {"accept": "application/json;as=Table;v=v1;g=meta.k8s.io,application/json"}
    watch = await api.watch(f"{MAPS}?watch=1&labelSelector=on", headers=accept)
    await create(api, "b", on="1")
    tables = [(await watch.next())[1] for _ in range(2)]
    await watch.close()
    assert [bool(table["columnDefinitions"]) for table in tables] == [True, False]
    assert [table["rows"][0]["cells"][0] for table in tables] == ["a", "b"]


async def test_one_encoding(api: EmbeddedApi) -> None:
    """All watches of a kind send the same bytes of an event: it is encoded once."""
    since = await version(api)
    first = await api.send("GET", f"{MAPS}?watch=1&resourceVersion={since}")
    second = await api.send("GET", f"{MAPS}?watch=1&resourceVersion={since}")
    for answer in (first, second):
        assert await anext(answer.chunks) == b""
    await create(api, "a")
    event = api.api.store.since(("", "configmaps"), int(since))[0]
    assert await anext(first.chunks) == await anext(second.chunks) == next(iter(event.lines.values()))
    assert len(event.lines) == 1
    for answer in (first, second):
        await answer.chunks.aclose()


async def test_slow_client(api: EmbeddedApi, monkeypatch: pytest.MonkeyPatch) -> None:
    """A client that does not read is let go rather than kept in memory for ever."""
    monkeypatch.setattr("gpushare.sandbox.apiserver.storage.HORIZON", 3)
    watch = await api.watch(f"{MAPS}?watch=1&resourceVersion={await version(api)}")
    assert await anext(watch._chunks) == b""
    for number in range(5):
        await create(api, f"a{number}")
    assert await watch.rest() == []


async def test_change_in_the_moment_of_a_bookmark() -> None:
    """A change that comes just as a watch has waited long enough is taken then: the bookmark's version has it in."""
    key = ("", "configmaps")
    subscription = Subscription(key, lambda _: True)
    change = Event("ADDED", key, Record({}, 2), None)
    taking = asyncio.create_task(subscription.take(0))
    await asyncio.sleep(0)
    subscription.push(change)

    assert await taking == [change]
