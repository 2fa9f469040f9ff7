"""The embedded API without sockets: requests in, parsed answers out."""

from __future__ import annotations

import json
import logging
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from gpushare.domain.manifests import Manifest
from gpushare.sandbox.apiserver.api import Api
from gpushare.sandbox.apiserver.requests import Answer, Request, Response, Stream

MERGE = "application/merge-patch+json"
APPLY = "application/apply-patch+yaml"
JSON_PATCH = "application/json-patch+json"
ADMIN = ("system:masters",)


@dataclass
class EmbeddedApi:
    """An API server, and how a test talks to it. After each request, garbage collection has settled."""

    fetched: list[str] = field(default_factory=list)
    """Addresses of kubelets that were asked."""
    answer: Callable[[Manifest, Manifest], Awaitable[bytes]] | None = None
    """Stands for all webhooks: the body of an answer to a webhook's configuration and a review."""

    def __post_init__(self) -> None:
        self.api = Api(
            version="v1.36.3", ca_pem="CA", fetch=self._fetch, call=self._call, log=logging.getLogger("test")
        )

    async def send(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        kind: str = "application/json",
        user: str = "admin",
        groups: tuple[str, ...] = (),
        headers: Mapping[str, str] | None = None,
    ) -> Answer:
        """The answer as it is. The query stands in the path."""
        token = self.api.authenticator.token_of(user, groups or (ADMIN if user == "admin" else ()))
        path, _, query = path.partition("?")
        pairs = dict(part.partition("=")[::2] for part in query.split("&") if part)
        content = b"" if body is None else json.dumps(body).encode()
        sent = {"authorization": f"Bearer {token}", "content-type": kind, "user-agent": "test/1", **(headers or {})}
        answer = await self.api.handle(Request(method, path, pairs, sent, content))
        self.api.collector.settle()
        return answer

    async def call(self, method: str, path: str, body: Any = None, **more: Any) -> tuple[int, Any]:
        """Code and parsed body."""
        answer = await self.send(method, path, body, **more)
        assert isinstance(answer, Response)
        return answer.code, json.loads(answer.body) if answer.content_type.startswith(
            "application/json"
        ) else answer.body

    async def create(self, path: str, obj: Any, **more: Any) -> Any:
        """A new object, which must not be refused."""
        code, created = await self.call("POST", path, obj, **more)
        assert code == 201, created
        return created

    async def get(self, path: str, **more: Any) -> Any:
        """An object or a list that must be there."""
        code, found = await self.call("GET", path, **more)
        assert code == 200, found
        return found

    async def watch(self, path: str, **more: Any) -> Watch:
        """Starts a watch."""
        answer = await self.send("GET", path, **more)
        assert isinstance(answer, Stream), answer
        return Watch(answer)

    async def _fetch(self, url: str) -> Response:
        self.fetched.append(url)
        return Response(b"a line\n", content_type="text/plain")

    async def _call(self, webhook: Manifest, review: Manifest) -> bytes:
        assert self.answer is not None
        return await self.answer(webhook, review)


class Watch:
    """The events of a watch, one by one."""

    def __init__(self, stream: Stream) -> None:
        self._chunks = stream.chunks
        self._lines: list[bytes] = []

    async def next(self) -> tuple[str, Any]:
        """Type and object of the next event."""
        while not self._lines:
            self._lines = (await anext(self._chunks)).splitlines()
        event = json.loads(self._lines.pop(0))
        return event["type"], event["object"]

    async def take(self, number: int) -> list[str]:
        """The next events, as `ADDED name`."""
        events = [await self.next() for _ in range(number)]
        return [f"{kind} {obj['metadata'].get('name', '')}".strip() for kind, obj in events]

    async def rest(self) -> list[str]:
        """All events until the server ends the watch."""
        found = []
        while True:
            try:
                found += await self.take(1)
            except StopAsyncIteration:
                return found

    async def close(self) -> None:
        await self._chunks.aclose()
