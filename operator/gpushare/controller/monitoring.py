"""What the controller answers over HTTP: whether it lives, whether it is ready, and its figures. Used by `running`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from gpushare.controller.looping import Passes
from gpushare.serving import metrics
from gpushare.serving.http import Request, Response
from gpushare.serving.metrics import Counter, Gauge, Metric, Metrics


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """The controller at one moment."""

    served: bool
    """The API server serves our kinds."""
    leading: bool
    passes: Passes
    objects: dict[str, int]
    """What it has seen, by plural name of the kind."""


class Monitoring:
    """A handler for `serving.http`."""

    def __init__(self, read: Callable[[], Facts]) -> None:
        self._read = read
        self._metrics = Metrics(self._collect)

    async def answer(self, request: Request) -> Response:
        """`/healthz`, `/readyz` and `/metrics`."""
        match request.path:
            case "/healthz":
                return Response(body=b"ok\n")
            case "/readyz":
                why = self.why_not_ready()
                return Response(status=503 if why else 200, body=f"{why or 'ok'}\n".encode())
            case "/metrics":
                return Response(body=self._metrics.render(), content_type=metrics.CONTENT_TYPE)
            case _:
                return Response(status=404, body=b"there are /healthz, /readyz and /metrics\n")

    def why_not_ready(self) -> str:
        """Empty when it works, or waits for its turn; a bad configuration of a user is no reason."""
        facts = self._read()
        if not facts.served:
            return "the API server does not serve ClusterPolicy and GPUNode (yet)"
        if facts.leading and not facts.passes.synced:
            return "the watches have not told of everything yet"
        return ""

    def _collect(self) -> Iterator[Metric]:
        facts = self._read()
        passes = facts.passes
        yield Gauge(name="gpushare_controller_leading", help="1 when this replica leads", value=facts.leading)
        for result, count in (("done", passes.done), ("failed", passes.failed)):
            yield Counter(
                name="gpushare_controller_passes_total",
                help="passes that did all they had to, and those of which something failed",
                value=count,
                labels={"result": result},
            )
        yield Gauge(
            name="gpushare_controller_last_pass_duration_seconds",
            help="how long the last pass took",
            value=passes.seconds,
        )
        for kind, number in facts.objects.items():
            yield Gauge(
                name="gpushare_controller_objects",
                help="objects that the controller takes into account",
                value=number,
                labels={"kind": kind},
            )
