"""The light client: HTTP/1.1 over asyncio and ssl, nothing generated, 2 MB. Used by agents and simulated nodes."""

from __future__ import annotations

import asyncio
import os
import ssl
from collections.abc import AsyncGenerator, Coroutine

import h11

from gpushare.errors import ClusterUnavailable, UsageError
from gpushare.kube.credentials import Credentials, TokenReader, tls_context
from gpushare.kube.http import Address, Connection
from gpushare.kube.pool import Pool
from gpushare.kube.requests import Request
from gpushare.kube.rest import USER_AGENT, Answer, RestCluster

_REQUEST_SECONDS = 30.0
_GRACE_SECONDS = 30.0
"""How much longer than it promised a watch may last before we hang up."""
_BROKEN = (OSError, h11.RemoteProtocolError)


class LeanCluster(RestCluster):
    """A `kube.cluster.Cluster` that costs next to nothing to import and to hold."""

    def __init__(self, credentials: Credentials, *, concurrency: int = 32, user_agent: str = USER_AGENT) -> None:
        """`concurrency` bounds the requests in flight; watches do not count. `user_agent`: see `rest.USER_AGENT`.

        Raises:
            UsageError: the server's address or a certificate cannot be used.
        """
        super().__init__(_LeanTransport(credentials, concurrency, user_agent))


class _LeanTransport:
    """Requests over pooled connections, with a bearer token that follows its file."""

    def __init__(self, credentials: Credentials, concurrency: int, user_agent: str) -> None:
        try:
            self._address = Address.parse(credentials.server, tls_context(credentials), credentials.server_name)
        except ValueError as error:
            raise UsageError(str(error)) from error
        self._tokens = TokenReader(credentials)
        self._user_agent = user_agent
        self._pool = Pool(self._address, most=concurrency)

    async def send(self, request: Request) -> Answer:
        """See `rest.Transport`."""
        answer = await self._send(request, self._tokens.read())
        # 401 also means that the token was replaced in its file a moment ago and the old one has run out.
        if answer.code == 401 and (token := self._tokens.read(anew=True)):
            answer = await self._send(request, token)
        return answer

    async def _send(self, request: Request, token: str) -> Answer:
        try:
            async with asyncio.timeout(_REQUEST_SECONDS), self._pool.lend() as connection:
                code = await self._start(connection, request, token)
                return Answer(code, await connection.body())
        except _BROKEN as error:
            raise self._unavailable(error) from error

    async def stream(self, request: Request, *, timeout_seconds: int) -> AsyncGenerator[Answer | bytes, None]:
        """See `rest.Transport`."""
        deadline = asyncio.get_running_loop().time() + timeout_seconds + _GRACE_SECONDS
        try:
            async with self._pool.lend_apart() as connection:
                async with asyncio.timeout(_REQUEST_SECONDS):
                    code = await self._start(connection, request, self._tokens.read())
                if code == 401:
                    self._tokens.read(anew=True)  # for the next try
                if code != 200:
                    yield Answer(code, await connection.body())
                    return
                rest = b""
                # The limit is around each read, never around a yield: it would cancel whoever reads from us.
                while chunk := await _before(deadline, connection.chunk()):
                    *lines, rest = (rest + chunk).split(b"\n")
                    for line in lines:
                        yield line
        except _BROKEN as error:
            raise self._unavailable(error) from error

    async def close(self) -> None:
        """See `rest.Transport`."""
        await self._pool.close()

    async def _start(self, connection: Connection, request: Request, token: str) -> int:
        headers = [("Host", self._address.authority), ("Accept", request.accept), ("User-Agent", self._user_agent)]
        if token:
            headers.append(("Authorization", f"Bearer {token}"))
        if request.content_type:
            headers.append(("Content-Type", request.content_type))
        return await connection.request(request.method, self._address.path + request.target, headers, request.payload)

    def _unavailable(self, error: Exception) -> ClusterUnavailable:
        if isinstance(error, ssl.SSLCertVerificationError):
            reason = f"its certificate is not trusted: {error.verify_message}"
        elif isinstance(error, TimeoutError):
            reason = "no answer in time"
        elif isinstance(error, ConnectionError) and error.errno:
            reason = os.strerror(error.errno)  # asyncio's own text is one about its calls
        else:
            reason = str(error) or type(error).__name__
        return ClusterUnavailable(f"API server {self._address.authority}: {reason}")


async def _before(deadline: float, read: Coroutine[object, object, bytes]) -> bytes:
    async with asyncio.timeout_at(deadline):
        return await read
