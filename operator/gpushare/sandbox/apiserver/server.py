"""The server: sockets, TLS, HTTP. The only module that knows aiohttp; all decisions are in `api`.

server = await ApiServer.start(Settings())
kubeconfig = server.kubeconfig("admin")
...
await server.stop()
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import random
import uuid
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from typing import Any

import aiohttp
from aiohttp import web

from gpushare.domain.manifests import Manifest
from gpushare.sandbox.apiserver import kubeconfigs, statuses
from gpushare.sandbox.apiserver.access.authentication import MASTERS
from gpushare.sandbox.apiserver.api import Api
from gpushare.sandbox.apiserver.handling.calling import Caller
from gpushare.sandbox.apiserver.requests import Answer, Request, Response, Stream
from gpushare.serving import closing
from gpushare.serving.certificates import Authority

HOST = "127.0.0.1"
ADMIN = "admin"
_BODY_LIMIT = 3 * 2**20
_ANSWER_SECONDS = 0.1
"""How long a request has that is being answered when the server ends."""
_HOSTS = ("localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc")
_FLOW_HEADERS = {
    "X-Kubernetes-Pf-Flowschema-Uid": str(uuid.uuid4()),
    "X-Kubernetes-Pf-Prioritylevel-Uid": str(uuid.uuid4()),
    "Cache-Control": "no-cache, private",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """How a server is started."""

    port: int = 0
    """0: any free one."""
    version: str = "v1.36.3"
    """The Kubernetes version that it says it is."""
    log: logging.Logger = field(default_factory=lambda: logging.getLogger(__name__))


class ApiServer:
    """A running API server."""

    def __init__(self, settings: Settings) -> None:
        """Use `start`."""
        self._authority = Authority.create("sandbox-ca")
        self._tls = self._authority.server_context("kube-apiserver", (*_HOSTS, HOST))
        self._settings = settings
        self._port = settings.port
        self._stack = AsyncExitStack()
        self._listening: AsyncExitStack | None = None
        self._api: Api | None = None
        self._clients: aiohttp.ClientSession | None = None

    @classmethod
    async def start(cls, settings: Settings) -> ApiServer:
        """A server that accepts connections. Raises OSError when the port is taken."""
        server = cls(settings)
        async with AsyncExitStack() as stack:
            await server._open(stack)
            server._stack = stack.pop_all()
        return server

    async def stop(self) -> None:
        """Ends all connections and the server. Safe to call twice."""
        await self.pause()
        await self._stack.aclose()

    async def pause(self) -> None:
        """Ends all connections and refuses new ones, as a server that restarts; of what is stored, only the past is lost."""
        listening, self._listening = self._listening, None
        if listening is not None:
            self.api.store.close_subscriptions()
            self.api.store.forget()
            await listening.aclose()

    async def resume(self, *, forbidden: float = 0.0, busy: float = 0.0) -> None:
        """Accepts connections again.

        A real server has not read its roles yet when its port opens: it answers 403 to all but `system:masters`, then 429
        to everybody. Here for as long as `forbidden` and `busy` say, in seconds.
        """
        self.api.trouble.begin(forbidden=forbidden, busy=busy)
        await self._listen()

    @property
    def api(self) -> Api:
        """The server without sockets, for tests that look inside."""
        assert self._api is not None
        return self._api

    @property
    def port(self) -> int:
        """Where it listens."""
        return self._port

    @property
    def url(self) -> str:
        """Where clients find it."""
        return f"https://{HOST}:{self._port}"

    @property
    def ca_pem(self) -> str:
        """The certificate authority that clients must trust."""
        return self._authority.pem

    @property
    def authority(self) -> Authority:
        """Signs what else must be trusted in this cluster: the certificates of kubelets."""
        return self._authority

    def token(self, user: str = ADMIN, groups: tuple[str, ...] = ()) -> str:
        """A bearer token of a user; the admin is in `system:masters`, everybody else has what RBAC gives."""
        return self.api.authenticator.token_of(user, (MASTERS,) if user == ADMIN and not groups else groups)

    def kubeconfig(self, user: str = ADMIN, groups: tuple[str, ...] = (), *, namespace: str = "") -> dict[str, Any]:
        """A kubeconfig of a user, as `token`."""
        return kubeconfigs.build_kubeconfig(
            server=self.url, ca_pem=self.ca_pem, user=user, token=self.token(user, groups), namespace=namespace
        )

    async def _open(self, stack: AsyncExitStack) -> None:
        # A kubelet's certificate is not checked, as with a real server that was given no authority for kubelets.
        connector = aiohttp.TCPConnector(ssl=False)
        self._clients = await stack.enter_async_context(aiohttp.ClientSession(connector=connector))
        self._api = Api(
            version=self._settings.version,
            ca_pem=self.ca_pem,
            fetch=self._fetch,
            call=self._call_webhook,
            log=self._settings.log,
        )
        collecting = asyncio.create_task(self._api.collector.run())
        stack.push_async_callback(_cancel, collecting)
        await self._listen()

    async def _listen(self) -> None:
        # Without aiohttp's runner, which takes no care of who is just connecting.
        answering = _Answering(self._serve, handler_cancellation=True, access_log=None)
        server = await asyncio.get_running_loop().create_server(
            answering, HOST, self._port, ssl=self._tls, reuse_address=True, start_serving=False
        )
        async with AsyncExitStack() as stack:
            stack.push_async_callback(lambda: closing.finish(_end(server, answering)))
            self._port = server.sockets[0].getsockname()[1]
            await server.start_serving()
            self._listening = stack.pop_all()

    async def _serve(self, http: web.BaseRequest) -> web.StreamResponse:
        request = await _request_of(http)
        if isinstance(request, Response):
            answer: Answer = request
        else:
            answer = await self.api.handle(request)
        if isinstance(answer, Stream):
            return await _stream(http, answer)
        response = web.Response(body=answer.body, status=answer.code, headers=_headers(answer.content_type))
        for name, value in answer.headers:
            response.headers.add(name, value)
        return response

    async def _fetch(self, url: str) -> Answer:
        """Reads a log from a kubelet; one that is followed comes as a stream."""
        assert self._clients is not None
        try:
            answer = await self._clients.get(url, timeout=aiohttp.ClientTimeout(total=None, connect=5))
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            raise statuses.internal(f'Get "{url}": {error}') from error
        content_type = answer.headers.get("Content-Type", "text/plain")
        if answer.status == 200 and "follow=true" in url:
            return Stream(_chunks(answer), content_type)
        async with answer:
            body = await answer.read()
        if answer.status != 200:
            code = answer.status
            raise statuses.ApiError(
                code, "BadRequest" if code < 500 else "InternalError", body.decode(errors="replace").strip()
            )
        return Response(body, content_type=content_type)

    async def _call_webhook(self, webhook: Manifest, review: Manifest) -> bytes:
        assert self._clients is not None
        return await Caller(self.api.store, self._clients).call(webhook, review)


class _Answering(web.Server):
    """All connections. Whoever comes to the end of its handshake after that of the server is let in no more."""

    _has_ended = False

    def connection_made(self, handler: web.RequestHandler, transport: asyncio.Transport) -> None:
        """A handshake has ended, which may have begun long before."""
        super().connection_made(handler, transport)
        if self._has_ended:
            transport.abort()

    async def end(self) -> None:
        """Hangs up everybody."""
        self._has_ended = True
        self.pre_shutdown()
        await self.shutdown(_ANSWER_SECONDS)


async def _end(server: asyncio.Server, answering: _Answering) -> None:
    await closing.close(server)
    await answering.end()


async def _request_of(http: web.BaseRequest) -> Request | Response:
    try:
        body = await http.content.read(-1) if http.body_exists else b""
    except (ValueError, web.HTTPException) as error:
        return Response.refused(statuses.bad_request(str(error)))
    if len(body) > _BODY_LIMIT:
        message = f"Request entity too large: limit is {_BODY_LIMIT}"
        return Response.refused(statuses.ApiError(413, "RequestEntityTooLarge", message, details={}))
    headers = {name.lower(): value for name, value in http.headers.items()}
    return Request(
        http.method, http.path, dict(http.query), headers, body, tuple(http.headers.getall("Impersonate-Group", ()))
    )


async def _stream(http: web.BaseRequest, answer: Stream) -> web.StreamResponse:
    response = web.StreamResponse(headers=_headers(answer.content_type))
    response.enable_chunked_encoding()
    await response.prepare(http)
    async with contextlib.aclosing(answer.chunks) as chunks:
        with contextlib.suppress(ConnectionError):
            async for chunk in chunks:
                if chunk:
                    await response.write(chunk)
            await response.write_eof()
    return response


def _headers(content_type: str) -> dict[str, str]:
    # Nobody's secret: reading the kernel's randomness for each answer lets another thread run each time.
    audit = uuid.UUID(int=random.getrandbits(128), version=4)
    return {"Content-Type": content_type, "Audit-Id": str(audit), **_FLOW_HEADERS}


async def _chunks(answer: aiohttp.ClientResponse) -> AsyncGenerator[bytes, None]:
    async with answer:
        async for chunk in answer.content.iter_any():
            yield chunk


async def _cancel(task: asyncio.Task[None]) -> None:
    task.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await task
