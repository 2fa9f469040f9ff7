"""The full client: `kubernetes.aio`, with the official package's connections and proxies. Used by the controller.

Objects stay JSON here as everywhere; the package's generated models are not used. Import this module late: it takes half a
second and 50 MB.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator

import aiohttp
from kubernetes.aio.client import ApiClient, Configuration
from kubernetes.aio.client.rest import RESTResponse

from gpushare.errors import ClusterUnavailable
from gpushare.kube.credentials import Credentials, TokenReader, tls_context
from gpushare.kube.requests import Request
from gpushare.kube.rest import USER_AGENT, Answer, RestCluster

_REQUEST_SECONDS = 30.0
_GRACE_SECONDS = 30.0
_BROKEN = (aiohttp.ClientError, OSError)


class FullCluster(RestCluster):
    """A `kube.cluster.Cluster` over the official asyncio client."""

    def __init__(self, credentials: Credentials, *, concurrency: int = 32) -> None:
        """`concurrency` bounds the connections, watches included.

        Raises:
            UsageError: a certificate cannot be used.
        """
        super().__init__(_OfficialTransport(credentials, concurrency))


class _OfficialTransport:
    """Requests through `ApiClient`. It is made with the first one, since it needs a running loop."""

    def __init__(self, credentials: Credentials, concurrency: int) -> None:
        self._credentials = credentials
        self._concurrency = concurrency
        self._tls = tls_context(credentials)
        self._tokens = TokenReader(credentials)
        self._client: ApiClient | None = None
        self._closed = False

    async def send(self, request: Request) -> Answer:
        """See `rest.Transport`."""
        answer = await self._send(request, self._tokens.read())
        # 401 also means that the token was replaced in its file a moment ago and the old one has run out.
        if answer.code == 401 and (token := self._tokens.read(anew=True)):
            answer = await self._send(request, token)
        return answer

    async def _send(self, request: Request, token: str) -> Answer:
        try:
            response = await self._call(request, token, _REQUEST_SECONDS)
            return Answer(response.status, await response.response.read())
        except _BROKEN as error:
            raise self._unavailable(error) from error

    async def stream(self, request: Request, *, timeout_seconds: int) -> AsyncGenerator[Answer | bytes, None]:
        """See `rest.Transport`."""
        try:
            response = await self._call(request, self._tokens.read(), timeout_seconds + _GRACE_SECONDS)
            try:
                if response.status == 401:
                    self._tokens.read(anew=True)  # for the next try
                if response.status != 200:
                    yield Answer(response.status, await response.response.read())
                    return
                rest = b""
                async for chunk in response.response.content.iter_any():
                    *lines, rest = (rest + chunk).split(b"\n")
                    for line in lines:
                        yield line
            finally:
                _hang_up(response.response)
        except _BROKEN as error:
            raise self._unavailable(error) from error

    async def close(self) -> None:
        """See `rest.Transport`."""
        self._closed = True
        if self._client is not None:
            await self._client.rest_client.close()

    async def _call(self, request: Request, token: str, seconds: float) -> RESTResponse:
        if self._closed:
            raise ConnectionAbortedError("the client is closed")
        if self._client is None:
            self._client = self._make_client()
        headers = {"Accept": request.accept, "User-Agent": USER_AGENT}
        if token:
            headers["Authorization"] = f"Bearer {token}"
        if request.content_type:
            headers["Content-Type"] = request.content_type
        return await self._client.call_api(
            request.method,
            self._credentials.server + request.target,
            header_params=headers,
            body=request.body,
            _request_timeout=seconds,
        )

    def _make_client(self) -> ApiClient:
        configuration = Configuration(
            host=self._credentials.server,
            tls_server_name=self._credentials.server_name or None,
            connection_pool_maxsize=self._concurrency,
        )
        # Or it would read all that the system trusts first, which takes 30 ms, for a context that is replaced below.
        configuration.ca_cert_data = self._credentials.ca or None
        client = ApiClient(configuration)
        if self._tls is not None:
            # Ours takes a client certificate from memory; the package's own only from a file that stays.
            client.rest_client.ssl_context = self._tls
        return client

    def _unavailable(self, error: Exception) -> ClusterUnavailable:
        reason = "no answer in time" if isinstance(error, TimeoutError) else str(error) or type(error).__name__
        return ClusterUnavailable(f"API server {self._credentials.server}: {reason}")


def _hang_up(response: aiohttp.ClientResponse) -> None:
    """Ends a stream at once: a goodbye over TLS would wait for that of the server, and `close` would not wait for either."""
    if (connection := response.connection) is not None and connection.transport is not None:
        connection.transport.abort()
    response.close()
