"""How webhooks are reached: by their URL, or by a service, of which a ready pod is asked. The door to `aiohttp` for them.

There is no name service and no proxy in the sandbox: the server finds a service's pods itself, as a real one does through
its endpoints. Each pod of the sandbox listens on an address of its own.
"""

from __future__ import annotations

import asyncio
import base64
import functools
import ssl
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import aiohttp

from gpushare.domain.manifests import Manifest
from gpushare.sandbox.apiserver.objects import services
from gpushare.sandbox.apiserver.objects.jsonvalues import encode, quoted
from gpushare.sandbox.apiserver.resources import PODS, Key
from gpushare.sandbox.apiserver.storage import Store

_SERVICES: Final[Key] = ("", "services")
_SHOWN: Final = 200
"""Characters that are quoted of what a webhook says in place of an answer."""


class CallFailed(Exception):  # noqa: N818 - the state is the name
    """A webhook did not answer, in the words of a real server."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Target:
    url: str
    """As texts name it."""
    address: str
    """Where it is."""
    host: str | None
    """Whose certificate is expected, where that is not the address."""


@dataclass(frozen=True, slots=True)
class Caller:
    """Calls webhooks."""

    store: Store
    session: aiohttp.ClientSession

    async def call(self, webhook: Manifest, review: Manifest) -> bytes:
        """Posts a review; returns the body of the answer. Raises `CallFailed`."""
        config, seconds = webhook["clientConfig"], int(webhook["timeoutSeconds"])
        target = self._target(config, seconds)
        try:
            async with asyncio.timeout(seconds):
                status, body = await self._post(target, _context_of(config.get("caBundle") or ""), encode(review))
        except TimeoutError:
            raise _failed(target.url, "context deadline exceeded") from None
        except (aiohttp.ClientError, OSError, ValueError) as error:
            raise _failed(target.url, _words_of(error)) from error
        if status >= 300:
            raise CallFailed(f"failed to call webhook: {_refused(status, body)}")
        return body

    async def _post(self, target: _Target, context: ssl.SSLContext, body: bytes) -> tuple[int, bytes]:
        for is_last in (False, True):
            try:
                async with self.session.post(
                    target.address,
                    data=body,
                    headers={"Content-Type": "application/json", "Accept": "application/json"},
                    ssl=context,
                    server_hostname=target.host,
                ) as answer:
                    return answer.status, await answer.read()
            except aiohttp.ServerDisconnectedError:
                # A connection that was kept may have been closed meanwhile; a new one tells.
                if is_last:
                    raise
        raise AssertionError("the last try returns or raises")

    def _target(self, config: Mapping[str, Any], seconds: int) -> _Target:
        wait = f"?timeout={seconds}s"
        if config.get("url"):
            return _Target(url=f"{config['url']}{wait}", address=f"{config['url']}{wait}", host=None)
        service = config["service"]
        name, namespace, port = service["name"], service["namespace"], int(service.get("port") or 443)
        host, path = f"{name}.{namespace}.svc", service.get("path") or ""
        url = f"https://{host}:{port}{path}{wait}"
        found = self.store.get(_SERVICES, namespace, name)
        if found is None:
            raise _failed(url, f"service {quoted(name)} not found")
        pods = (record.object for record in self.store.objects(PODS, namespace))
        address = services.address_of(found.object, port, pods)
        if address is None:
            raise _failed(url, f"no endpoints available for service {quoted(name)}")
        return _Target(url=url, address=f"https://{address}{path}{wait}", host=host)


@functools.lru_cache(maxsize=16)
def _context_of(bundle: str) -> ssl.SSLContext:
    """One for all calls with the same trust: connections are kept open by it."""
    return ssl.create_default_context(cadata=base64.b64decode(bundle).decode() if bundle else None)


def _failed(url: str, why: str) -> CallFailed:
    return CallFailed(f"failed to call webhook: Post {quoted(url)}: {why}")


def _words_of(error: Exception) -> str:
    """As Go's library says it."""
    if isinstance(error, aiohttp.ClientConnectorCertificateError):
        return f"tls: failed to verify certificate: x509: {_certificate_words(error.certificate_error)}"
    if isinstance(error, aiohttp.ClientConnectorError) and isinstance(error.os_error, ConnectionRefusedError):
        return f"dial tcp {error.host}:{error.port}: connect: connection refused"
    if isinstance(error, aiohttp.ServerDisconnectedError):
        return "EOF"
    return str(error)


def _certificate_words(error: Exception) -> str:
    message = getattr(error, "verify_message", "") or str(error)
    if "expired" in message:
        return "certificate has expired or is not yet valid"
    if "mismatch" in message.lower() or "doesn't match" in message:
        return f"certificate is not valid for the host: {message}"
    return "certificate signed by unknown authority"


def _refused(code: int, body: bytes) -> str:
    if code == 404:
        return "the server could not find the requested resource"
    text = body[:_SHOWN].decode(errors="replace").strip()
    return f"an error on the server ({quoted(text or 'unknown')}) has prevented the request from succeeding"
