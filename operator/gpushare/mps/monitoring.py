"""What the MPS process answers over HTTP: whether it lives, whether its daemons run. Used by `running`."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from gpushare.serving import metrics, monitoring
from gpushare.serving.metrics import Gauge


class Monitoring(monitoring.Monitoring):
    """Metrics and health of the MPS process."""

    def __init__(self, why_not_ready: Callable[[], str], running: Callable[[], Mapping[str, bool]]) -> None:
        """The first is empty when all is well; the second tells of each daemon whether it runs."""
        self._why_not_ready = why_not_ready
        self._running = running
        super().__init__()

    def why_not_ready(self) -> str:
        """Empty when every daemon that should run does."""
        return self._why_not_ready()

    def collect(self) -> Iterator[Gauge]:
        """Its figures, as they are now."""
        for resource, is_running in self._running().items():
            yield metrics.gauge(
                "gpushare_mps_daemon_up",
                "1 when the MPS control daemon of the resource runs with the limits that it should have",
                is_running,
                resource=resource,
            )
