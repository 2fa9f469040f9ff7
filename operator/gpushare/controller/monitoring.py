"""What the controller answers over HTTP: whether it lives, whether it is ready, and its figures. Used by `running`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from gpushare.controller.looping import Passes
from gpushare.serving import metrics
from gpushare.serving.http import Request, Response
from gpushare.serving.metrics import Gauge, Metrics


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
        self._metrics = Metrics(self._gauges)

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

    def _gauges(self) -> Iterator[Gauge]:
        facts = self._read()
        for name, text, value in (
            ("leading", "1 when this replica leads", float(facts.leading)),
            ("passes", "passes since the start that did all they had to", facts.passes.done),
            ("passes_failed", "passes since the start of which something failed", facts.passes.failed),
            ("pass_seconds", "how long the last pass took", facts.passes.seconds),
        ):
            yield Gauge(name=f"gpushare_controller_{name}", help=text, value=value)
        for kind, count in facts.objects.items():
            yield Gauge(
                name="gpushare_controller_objects",
                help="objects that the controller takes into account",
                value=count,
                labels={"kind": kind},
            )
