"""Scheduler extenders as kube-scheduler calls them: filter, prioritize, preempt and bind over HTTP. Called by `placing`.

The protocol's Go types have no JSON tags: names are capitalised, and read in any case. Failures are said in the words of a
real scheduler, since people see them in Events.
"""

from __future__ import annotations

import asyncio
import json
import ssl
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias
from urllib.parse import urlsplit

import h11

from gpushare.domain.manifests import Manifest
from gpushare.errors import GpuShareError
from gpushare.kube.http import Address
from gpushare.kube.pool import Pool
from gpushare.sandbox.scheduling.configuration import ExtenderSettings

_MOST_CALLS: Final = 64
_BEST_SCORE: Final = 10
_BROKEN: Final = (OSError, h11.RemoteProtocolError)

Locate: TypeAlias = Callable[[str, int], str | None]
"""`host:port` behind a name and a port, as a cluster's name service and proxy find it; None: nobody is there."""


class ExtenderFailed(GpuShareError):  # noqa: N818 - the state is the name
    """An extender could not be asked, or said that it cannot answer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Filtered:
    """Which nodes an extender leaves, and why not the others."""

    fitting: frozenset[str]
    failed: Mapping[str, str] = field(default_factory=dict)
    unresolvable: Mapping[str, str] = field(default_factory=dict)
    """Where nothing that is evicted would help."""


class Extender:
    """Calls one extender."""

    def __init__(self, settings: ExtenderSettings, locate: Locate) -> None:
        self.settings = settings
        self._locate = locate
        self._pools: dict[str, Pool] = {}
        self._tls = _context_of(settings) if settings.url.startswith("https:") else None

    async def close(self) -> None:
        """Ends all connections."""
        for pool in self._pools.values():
            await pool.close()

    async def filter(self, pod: Manifest, nodes: Mapping[str, Manifest]) -> Filtered:
        """Which of the nodes fit. Raises `ExtenderFailed`."""
        answer = _lowered(await self._call(self.settings.filter_verb, self._args(pod, nodes)))
        _check(answer)
        if isinstance(answer.get("nodenames"), list):
            fitting = answer["nodenames"]
        else:
            fitting = [node["metadata"]["name"] for node in (answer.get("nodes") or {}).get("items") or ()]
        if unknown := sorted(set(fitting) - nodes.keys()):
            url = self.settings.url
            raise ExtenderFailed(
                f'extender "{url}" claims a filtered node "{unknown[0]}" which is not found in the input node list'
            )
        return Filtered(
            fitting=frozenset(fitting),
            failed=answer.get("failednodes") or {},
            unresolvable=answer.get("failedandunresolvablenodes") or {},
        )

    async def prioritize(self, pod: Manifest, nodes: Mapping[str, Manifest]) -> dict[str, float]:
        """By node from 0 to 1, times the weight of the extender. Raises `ExtenderFailed`."""
        answer = await self._call(self.settings.prioritize_verb, self._args(pod, nodes))
        scores = map(_lowered, answer if isinstance(answer, list) else ())
        return {str(each["host"]): self.settings.weight * each["score"] / _BEST_SCORE for each in scores}

    async def bind(self, pod: Manifest, node: str) -> None:
        """Has the extender bind the pod. Raises `ExtenderFailed`."""
        about = pod["metadata"]
        args = {"PodName": about["name"], "PodNamespace": about["namespace"], "PodUID": about["uid"], "Node": node}
        _check(_lowered(await self._call(self.settings.bind_verb, args)))

    async def preempt(self, pod: Manifest, victims: Mapping[str, Sequence[Manifest]]) -> dict[str, frozenset[str]]:
        """Which nodes are left to make room on, and the uids of the pods that are to go there. Raises `ExtenderFailed`."""
        if self.settings.sends_names:
            short = {node: [{"UID": each["metadata"]["uid"]} for each in pods] for node, pods in victims.items()}
            given = {"NodeNameToMetaVictims": {node: {"Pods": pods} for node, pods in short.items()}}
        else:
            given = {"NodeNameToVictims": {node: {"Pods": list(pods)} for node, pods in victims.items()}}
        answer = _lowered(await self._call(self.settings.preempt_verb, {"Pod": pod, **given}))
        found = answer.get("nodenametometavictims") or {}
        return {
            node: frozenset(str(_lowered(each)["uid"]) for each in _lowered(left).get("pods") or ())
            for node, left in found.items()
        }

    def _args(self, pod: Manifest, nodes: Mapping[str, Manifest]) -> dict[str, Any]:
        if self.settings.sends_names:
            return {"Pod": pod, "Nodes": None, "NodeNames": list(nodes)}
        return {"Pod": pod, "Nodes": {"metadata": {}, "items": list(nodes.values())}, "NodeNames": None}

    async def _call(self, verb: str, args: Mapping[str, Any]) -> Any:
        url = f"{self.settings.url}/{verb}"
        try:
            async with asyncio.timeout(self.settings.seconds):
                code, body = await self._post(url, json.dumps(args, separators=(",", ":")).encode())
            if code != 200:
                raise ExtenderFailed(f"failed {verb} with extender at URL {url}, code {code}")
            return json.loads(body)
        except TimeoutError:
            why = "context deadline exceeded (Client.Timeout exceeded while awaiting headers)"
            raise ExtenderFailed(f'Post "{url}": {why}') from None
        except _BROKEN as error:
            raise ExtenderFailed(f'Post "{url}": {_words_of(error)}') from error
        except ValueError as error:
            raise ExtenderFailed(f"failed {verb} with extender at URL {url}: the answer is no JSON") from error

    async def _post(self, url: str, body: bytes) -> tuple[int, bytes]:
        parts = urlsplit(url)
        host, port = parts.hostname or "", parts.port or (443 if self._tls else 80)
        found = self._locate(host, port)
        if found is None:
            raise ConnectionRefusedError(f"dial tcp {host}:{port}: connect: connection refused")
        if found not in self._pools:
            address = Address.parse(f"{parts.scheme}://{found}", self._tls, self.settings.server_name or host)
            self._pools[found] = Pool(address, most=_MOST_CALLS)
        headers = [("Host", f"{host}:{port}"), ("Content-Type", "application/json")]
        async with self._pools[found].lend() as connection:
            code = await connection.request("POST", parts.path, headers, body)
            return code, await connection.body()


def _context_of(settings: ExtenderSettings) -> ssl.SSLContext:
    context = ssl.create_default_context(cadata=settings.ca or None)
    if not settings.is_verified:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    return context


def _check(answer: Mapping[str, Any]) -> None:
    if answer.get("error"):
        raise ExtenderFailed(str(answer["error"]))


def _lowered(given: Any) -> dict[str, Any]:
    if not isinstance(given, dict):
        raise ExtenderFailed(f"the extender answers with {type(given).__name__} where an object is due")
    return {name.lower(): value for name, value in given.items()}


def _words_of(error: Exception) -> str:
    """As Go's library says it."""
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"tls: failed to verify certificate: x509: {error.verify_message}"
    if isinstance(error, ConnectionRefusedError):
        text = str(error)
        return text if text.startswith("dial tcp") else "dial tcp: connect: connection refused"
    return "EOF" if isinstance(error, ConnectionResetError) else str(error)
