"""The kubelet's HTTPS port, as far as `kubectl logs` needs it: one server for all nodes of a process.

The API server asks it under the address and port that each Node names. Started by the fleet.
"""

from __future__ import annotations

import logging
import ssl
import time
from collections.abc import AsyncIterator, Callable, Mapping

from gpushare.sandbox.apiserver.objects import times
from gpushare.sandbox.node.logs import Line, Output
from gpushare.sandbox.node.pods import LogUnavailable, PodWorker
from gpushare.sandbox.node.statuses import HOST_IP
from gpushare.serving.certificates import Authority
from gpushare.serving.http import HttpServer, Request, Response

Find = Callable[[str, str], PodWorker | None]
"""A pod by namespace and name, on whichever node it is."""


class LogServer:
    """Answers `/containerLogs/<namespace>/<pod>/<container>` with the query that kubectl and API servers send."""

    def __init__(self, find: Find, log: logging.Logger) -> None:
        self._find = find
        self._server = HttpServer(self._answer, log)

    async def start(self, tls: ssl.SSLContext | None = None, port: int = 0) -> int:
        """Listens, with a certificate of its own where none is given, and returns the port."""
        if tls is None:
            tls = Authority.create("gpushare-sandbox-kubelets").server_context("kubelet", ["localhost", HOST_IP])
        return await self._server.start(HOST_IP, port, tls=tls)

    async def stop(self) -> None:
        """Ends every connection. Safe to call twice."""
        await self._server.stop()

    async def _answer(self, request: Request) -> Response:
        parts = request.path.strip("/").split("/")
        if request.path == "/healthz":
            return Response(body=b"ok")
        if len(parts) != 4 or parts[0] != "containerLogs":
            return Response(status=404, body=b"404 page not found\n")
        try:
            return self._logs(parts[1], parts[2], parts[3], request.query)
        except LogUnavailable as missing:
            return Response(status=missing.code, body=str(missing).encode())
        except ValueError as error:
            return Response(status=400, body=f"{error}\n".encode())

    def _logs(self, namespace: str, pod: str, container: str, query: Mapping[str, str]) -> Response:
        worker = self._find(namespace, pod)
        if worker is None:
            raise LogUnavailable(404, f'pod "{pod}" not found')
        output = worker.output_of(container, previous=_is_set(query, "previous"))
        tail = int(query["tailLines"]) if query.get("tailLines") else None
        since, stamped = _since(query), _is_set(query, "timestamps")
        if _is_set(query, "follow"):
            return Response(body=_followed(output, since=since, tail=tail, stamped=stamped))
        body = _bytes_of(output.lines(since=since, tail=tail), stamped=stamped)
        return Response(body=body[: int(query["limitBytes"])] if query.get("limitBytes") else body)


async def _followed(output: Output, *, since: float, tail: int | None, stamped: bool) -> AsyncIterator[bytes]:
    async for lines in output.follow(since=since, tail=tail):
        yield _bytes_of(lines, stamped=stamped)


def _bytes_of(lines: list[Line], *, stamped: bool) -> bytes:
    return "".join(f"{line.stamped() if stamped else line.text}\n" for line in lines).encode()


def _is_set(query: Mapping[str, str], name: str) -> bool:
    return query.get(name, "").lower() in {"true", "1"}


def _since(query: Mapping[str, str]) -> float:
    if query.get("sinceSeconds"):
        return time.time() - float(query["sinceSeconds"])
    return times.epoch_of(query["sinceTime"]) if query.get("sinceTime") else 0.0
