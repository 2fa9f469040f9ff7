"""Metrics of one process: a registry of its own, since many processes of ours run in one in the sandbox.

Figures are read when somebody asks, from what the process knows anyway; nothing is counted twice.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"


@dataclass(frozen=True, slots=True, kw_only=True)
class Gauge:
    """One figure with its labels, as it is now."""

    name: str
    help: str
    value: float
    labels: Mapping[str, str] = field(default_factory=dict)


class Metrics(Collector):
    """Renders the gauges that `read` gives in Prometheus' text format."""

    def __init__(self, read: Callable[[], Iterable[Gauge]]) -> None:
        self._read = read
        self._registry = CollectorRegistry(auto_describe=False)
        self._registry.register(self)

    def render(self) -> bytes:
        """The text to answer with, of type `CONTENT_TYPE`."""
        return generate_latest(self._registry)

    def collect(self) -> Iterator[GaugeMetricFamily]:
        """Called by the registry."""
        families: dict[str, GaugeMetricFamily] = {}
        for gauge in self._read():
            if gauge.name not in families:
                families[gauge.name] = GaugeMetricFamily(gauge.name, gauge.help, labels=tuple(gauge.labels))
            families[gauge.name].add_metric(tuple(gauge.labels.values()), gauge.value)
        yield from families.values()

    def describe(self) -> Iterator[GaugeMetricFamily]:
        """Called once at registration; there is nothing to say before somebody asks."""
        return iter(())
