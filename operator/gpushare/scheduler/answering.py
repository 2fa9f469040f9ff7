"""Everything that one replica answers over HTTPS, by path. Used by `running`."""

from __future__ import annotations

import json
from typing import Final

from gpushare import __version__
from gpushare.scheduler.admission import Admission
from gpushare.scheduler.books import Books
from gpushare.scheduler.extender import Extender
from gpushare.scheduler.inspecting import build_inspection
from gpushare.serving.http import JSON, Request, Response
from gpushare.serving.monitoring import Monitoring

PREFIX: Final = "/gpushare-scheduler"
"""May stand before every path: where Alibaba's extender has its verbs."""
WEBHOOK: Final = "/webhook"


class Answering:
    """A handler for `serving.http`."""

    def __init__(self, extender: Extender, admission: Admission, books: Books, monitoring: Monitoring) -> None:
        self._extender = extender
        self._admission = admission
        self._books = books
        self._monitoring = monitoring

    async def answer(self, request: Request) -> Response:
        """Finds who answers."""
        path = request.path.removeprefix(PREFIX)
        verb = path.removeprefix("/")
        if request.method == "POST" and self._extender.has(verb):
            return await self._extender.answer(verb, request)
        if request.method == "POST" and path == WEBHOOK:
            return await self._admission.answer(request)
        if request.method == "GET" and (path == "/inspect" or path.startswith("/inspect/")):
            return Response(body=build_inspection(self._books, path[len("/inspect/") :]), content_type=JSON)
        if request.method == "GET" and path == "/version":
            return Response(body=json.dumps({"version": __version__}).encode(), content_type=JSON)
        if request.method == "GET":
            return await self._monitoring.answer(request)
        return Response(status=404, body=b"POST filter, prioritize, preempt, bind or webhook; GET inspect or version\n")
