"""What the MPS process answers over HTTP: whether it lives, whether its daemons run. Used by `running`."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from gpushare.serving import metrics
from gpushare.serving.http import Request, Response
from gpushare.serving.metrics import Gauge, Metrics


class Monitoring:
    """A handler for `serving.http`."""

    def __init__(self, why_not_ready: Callable[[], str], running: Callable[[], Mapping[str, bool]]) -> None:
        """The first is empty when all is well; the second tells of each daemon whether it runs."""
        self._why_not_ready = why_not_ready
        self._running = running
        self._metrics = Metrics(self._gauges)

    async def answer(self, request: Request) -> Response:
        """`/healthz`, `/readyz` and `/metrics`."""
        match request.path:
            case "/healthz":
                return Response(body=b"ok\n")
            case "/readyz":
                why = self._why_not_ready()
                return Response(status=503 if why else 200, body=f"{why or 'ok'}\n".encode())
            case "/metrics":
                return Response(body=self._metrics.render(), content_type=metrics.CONTENT_TYPE)
            case _:
                return Response(status=404, body=b"there are /healthz, /readyz and /metrics\n")

    def _gauges(self) -> Iterator[Gauge]:
        for resource, is_running in self._running().items():
            yield Gauge(
                name="gpushare_mps_daemon_up",
                help="1 when the MPS control daemon of the resource runs with the limits that it should have",
                value=is_running,
                labels={"resource": resource},
            )
