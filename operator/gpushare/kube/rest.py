"""`Cluster` over any HTTP transport: what a request means and what an answer says. `lean` and `client` bring the transport."""

from __future__ import annotations

import asyncio
import json
import random
from collections.abc import AsyncGenerator, Callable, Iterable
from contextlib import aclosing
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol

from gpushare.domain.manifests import Kind, Manifest
from gpushare.errors import ClusterRefused, ClusterUnavailable, Conflict, Expired
from gpushare.kube import failures, requests
from gpushare.kube.backoff import Backoff
from gpushare.kube.cluster import EventType, ObjectList, PatchType, Trim, WatchEvent
from gpushare.kube.requests import Request

USER_AGENT = "gpushare"
"""What the API server writes down as the manager of the fields of a write that names none."""
PAGE = 500
"""Objects a page of a list: what kubectl asks for; a page of Nodes is about 6 MB."""
_BUSY = 429
_BROKEN = 500
_TIMES = 5
"""So often a request is sent for which a server has no time, or of several servers one is broken. Whoever needs many answers in a
row would never come to an end otherwise."""
_WATCH_SECONDS = (240, 360)
"""How long one watch may last, drawn anew each time, so that many agents do not reconnect together."""


@dataclass(frozen=True, slots=True)
class Answer:
    """Status and whole body of an HTTP response."""

    code: int
    body: bytes

    @property
    def is_good(self) -> bool:
        """Whether the request was carried out."""
        return 200 <= self.code < 300


class Transport(Protocol):
    """Carries requests to one API server, with its address, trust and credentials. Raises only `ClusterUnavailable`."""

    async def send(self, request: Request) -> Answer:
        """Sends a request and reads the whole answer."""
        ...

    def stream(self, request: Request, *, timeout_seconds: int) -> AsyncGenerator[Answer | bytes, None]:
        """Sends a request and yields the lines of the answer; first and only an `Answer` where it was refused."""
        ...

    async def close(self) -> None:
        """Ends all connections. Safe to call twice."""
        ...


class RestCluster:
    """A `kube.cluster.Cluster` over a transport."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    async def get(self, kind: Kind, name: str, namespace: str = "") -> Manifest | None:
        """See `Cluster.get`."""
        return await self._object_or_none(requests.build_get(kind, name, namespace), name)

    async def list(
        self, kind: Kind, namespace: str = "", *, labels: str = "", fields: str = "", trim: Trim | None = None
    ) -> ObjectList:
        """See `Cluster.list`."""
        build = partial(requests.build_list, kind, namespace, labels=labels, fields=fields)
        # Items of built-in lists come without; whoever reads an object wants to know what it is.
        what = {"apiVersion": kind.api_version, "kind": kind.kind}
        items: list[Manifest] = []
        version = ""
        async for page in self._pages(build):
            if page is None:
                items.clear()
                continue
            whole: Iterable[Manifest] = ({**what, **item} for item in page.get("items") or ())
            items += whole if trim is None else [kept for each in whole if (kept := trim(each)) is not None]
            version = str((page.get("metadata") or {}).get("resourceVersion", ""))
        return ObjectList(tuple(items), version)

    async def names(self, kind: Kind, namespace: str = "", *, labels: str = "") -> frozenset[str]:
        """See `Cluster.names`."""
        found: set[str] = set()
        async for page in self._pages(partial(requests.build_names, kind, namespace, labels=labels)):
            if page is None:
                found.clear()
                continue
            # A server that makes no table of a kind answers with the list.
            found.update(row["cells"][0] for row in page.get("rows") or ())
            found.update(item["metadata"]["name"] for item in page.get("items") or ())
        return frozenset(found)

    async def _pages(self, build: Callable[..., Request]) -> AsyncGenerator[Manifest | None, None]:
        """Page after page; None when a page has expired meanwhile, and all comes again in one piece."""
        limit, after = PAGE, ""
        while True:
            try:
                page = await self._object(build(limit=limit, after=after))
            except Expired:
                if not after:
                    raise
                limit, after = 0, ""
                yield None
                continue
            yield page
            after = (page.get("metadata") or {}).get("continue") or ""
            if not after:
                return

    async def watch(
        self, kind: Kind, namespace: str = "", *, labels: str = "", fields: str = "", resource_version: str = ""
    ) -> AsyncGenerator[WatchEvent, None]:
        """See `Cluster.watch`."""
        seconds = random.randint(*_WATCH_SECONDS)  # noqa: S311 - spreads load, hides nothing
        request = requests.build_watch(
            kind, namespace, labels=labels, fields=fields, resource_version=resource_version, timeout_seconds=seconds
        )
        async with aclosing(self._transport.stream(request, timeout_seconds=seconds)) as lines:
            async for line in lines:
                if isinstance(line, Answer):
                    raise failures.failure_of(line.code, failures.status_of(line.body), f"watch {request.path}")
                yield _event_of(line, request)

    async def create(self, manifest: Manifest, *, subresource: str = "", name: str = "") -> Manifest:
        """See `Cluster.create`."""
        return await self._object(requests.build_create(manifest, subresource=subresource, name=name))

    async def apply(self, manifest: Manifest, *, manager: str, force: bool = False, subresource: str = "") -> Manifest:
        """See `Cluster.apply`."""
        return await self._object(requests.build_apply(manifest, manager=manager, force=force, subresource=subresource))

    async def patch(
        self,
        kind: Kind,
        name: str,
        body: Any,
        namespace: str = "",
        *,
        patch_type: PatchType = PatchType.MERGE,
        subresource: str = "",
    ) -> Manifest | None:
        """See `Cluster.patch`."""
        path = kind.path(namespace, name, subresource)
        return await self._object_or_none(requests.build_patch(path, body, patch_type), name)

    async def replace(self, manifest: Manifest, *, subresource: str = "") -> Manifest:
        """See `Cluster.replace`."""
        return await self._object(requests.build_replace(manifest, subresource=subresource))

    async def delete(
        self, kind: Kind, name: str, namespace: str = "", *, uid: str = "", grace_seconds: int | None = None
    ) -> bool:
        """See `Cluster.delete`. An object of another uid under the same name counts as not there."""
        request = requests.build_delete(kind.path(namespace, name), uid=uid, grace_seconds=grace_seconds)
        try:
            return await self._object_or_none(request, name) is not None
        except Conflict:
            if uid:
                return False
            raise

    async def close(self) -> None:
        """See `Cluster.close`."""
        await self._transport.close()

    async def _send(self, request: Request) -> Answer:
        backoff = Backoff(first=0.1, most=1.0)
        for _ in range(_TIMES - 1):
            answer = await self._transport.send(request)
            # The former says so before anything is done; of the latter nobody knows, but reading again does no harm.
            if answer.code != _BUSY and not (request.method == "GET" and answer.code >= _BROKEN):
                return answer
            await asyncio.sleep(backoff.next())
        return await self._transport.send(request)

    async def _object(self, request: Request) -> Manifest:
        answer = await self._send(request)
        if not answer.is_good:
            raise failures.failure_of(answer.code, failures.status_of(answer.body), str(request))
        return _manifest_of(answer.body, request)

    async def _object_or_none(self, request: Request, name: str) -> Manifest | None:
        answer = await self._send(request)
        if answer.is_good:
            return _manifest_of(answer.body, request)
        status = failures.status_of(answer.body)
        if answer.code == 404 and failures.is_absent(status, name):
            return None
        raise failures.failure_of(answer.code, status, str(request))


def _manifest_of(body: bytes, request: Request) -> Manifest:
    try:
        manifest = json.loads(body)
    except ValueError as error:
        raise ClusterUnavailable(f"{request}: the answer is no JSON") from error
    if not isinstance(manifest, dict):
        raise ClusterRefused(f"{request}: the answer is no object; is this a Kubernetes API server?", code=200)
    return manifest


def _event_of(line: bytes, request: Request) -> WatchEvent:
    event = _manifest_of(line, request)
    body = event.get("object") or {}
    if event.get("type") == "ERROR":
        raise failures.failure_of(int(body.get("code") or 500), body, f"watch {request.path}")
    return WatchEvent(EventType(event["type"]), body)
