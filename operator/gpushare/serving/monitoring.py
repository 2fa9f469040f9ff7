"""What every process of ours answers over HTTP: whether it lives, whether it works, and its figures.

The `monitoring` module of each process says what that means for it; `listening` serves it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable

from gpushare.serving import metrics
from gpushare.serving.http import Request, Response
from gpushare.serving.metrics import Metric, Metrics


class Monitoring(ABC):
    """`/healthz`, `/readyz` and `/metrics` of one process."""

    def __init__(self) -> None:
        self._metrics = Metrics(self.collect)

    async def answer(self, request: Request) -> Response:
        """A handler for `serving.http`."""
        match request.path:
            case "/healthz":
                return _verdict(self.why_not_alive())
            case "/readyz":
                return _verdict(self.why_not_ready())
            case "/metrics":
                return Response(body=self._metrics.render(), content_type=metrics.CONTENT_TYPE)
            case _:
                return Response(status=404, body=b"there are /healthz, /readyz and /metrics\n")

    def why_not_alive(self) -> str:
        """Why only a restart helps, in one line; empty: it lives, if it answers at all."""
        return ""

    @abstractmethod
    def why_not_ready(self) -> str:
        """Why it does not do its work, in one line; empty when it does."""

    @abstractmethod
    def collect(self) -> Iterable[Metric]:
        """Its figures, as they are now."""


def _verdict(why_not: str) -> Response:
    return Response(status=503 if why_not else 200, body=f"{why_not or 'ok'}\n".encode())
