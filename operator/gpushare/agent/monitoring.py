"""What the agent answers over HTTP: whether it lives, whether it is ready, and its figures."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from gpushare.agent.facts import Facts, build_resources
from gpushare.serving import metrics
from gpushare.serving.http import Request, Response
from gpushare.serving.metrics import Gauge, Metrics


class Monitoring:
    """A handler for `serving.http`."""

    def __init__(self, read: Callable[[], Facts | None]) -> None:
        """`read` gives what the agent knows now; None: it is still starting."""
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
        """Empty when the driver answers and the kubelet knows every resource. A refused configuration is no reason."""
        facts = self._read()
        if facts is None:
            return "starting"
        if facts.failure or facts.inventory is None:
            return f"driver: {facts.failure or 'not asked yet'}"
        missing = [
            f"{name}: {standing.message}" for name, standing in facts.standings.items() if not standing.registered
        ]
        return "; ".join(missing)

    def _gauges(self) -> Iterator[Gauge]:
        facts = self._read()
        if facts is None:
            return
        yield Gauge(
            name="gpushare_config_applied",
            help="1 when the assigned configuration is in force, 0 when it was refused",
            value=not facts.decision.refusal,
            labels={"revision": facts.decision.revision or ""},
        )
        for resource in build_resources(facts.pools, facts.holders):
            for state, count in (
                ("healthy", resource.healthy),
                ("unhealthy", resource.total - resource.healthy),
                ("allocated", resource.allocated),
            ):
                yield Gauge(
                    name="gpushare_shares",
                    help="shares that the kubelet is offered, and those of them that containers hold",
                    value=count,
                    labels={"resource": resource.name, "strategy": resource.strategy, "state": state},
                )
        for name, standing in facts.standings.items():
            yield Gauge(
                name="gpushare_registered",
                help="1 when the kubelet knows the resource",
                value=standing.registered,
                labels={"resource": name},
            )
        for gpu in facts.inventory.gpus if facts.inventory is not None else ():
            yield Gauge(
                name="gpushare_gpu_healthy",
                help="1 when the GPU may be given out",
                value=gpu.health.healthy,
                labels={"index": str(gpu.index), "uuid": gpu.uuid, "product": gpu.product},
            )
