"""Metrics of one process: a registry of its own, since many processes of ours run in one in the sandbox.

Figures are read when somebody asks, from what the process knows anyway; nothing is counted twice.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from typing import TypeAlias

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily
from prometheus_client.registry import Collector
from prometheus_client.utils import floatToGoString

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"


@dataclass(frozen=True, slots=True, kw_only=True)
class Gauge:
    """One figure with its labels, as it is now."""

    name: str
    help: str
    value: float
    labels: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Counter:
    """How often something has happened since the process started."""

    name: str
    """Ends in `_total`."""
    help: str
    value: float
    labels: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Histogram:
    """How some durations, or other amounts, are spread."""

    name: str
    """Ends in the unit: `_seconds`."""
    help: str
    bounds: Sequence[float]
    """Upper bounds of the classes; the last class has none."""
    counts: Sequence[int]
    """How many fell into each class, one more than there are bounds."""
    sum: float
    labels: Mapping[str, str] = field(default_factory=dict)


Metric: TypeAlias = Gauge | Counter | Histogram
_Family: TypeAlias = GaugeMetricFamily | CounterMetricFamily | HistogramMetricFamily


def gauge(name: str, text: str, value: float, /, **labels: str) -> Gauge:
    """A `Gauge`, in the form in which processes list theirs."""
    return Gauge(name=name, help=text, value=value, labels=labels)


def counter(name: str, text: str, value: float, /, **labels: str) -> Counter:
    """A `Counter`, in the form in which processes list theirs."""
    return Counter(name=name, help=text, value=value, labels=labels)


class Metrics(Collector):
    """Renders what `read` gives in Prometheus' text format."""

    def __init__(self, read: Callable[[], Iterable[Metric]]) -> None:
        self._read = read
        self._registry = CollectorRegistry(auto_describe=False)
        self._registry.register(self)

    def render(self) -> bytes:
        """The text to answer with, of type `CONTENT_TYPE`."""
        return generate_latest(self._registry)

    def collect(self) -> Iterator[_Family]:
        """Called by the registry."""
        families: dict[str, _Family] = {}
        for metric in self._read():
            if metric.name not in families:
                families[metric.name] = _family_of(metric)
            _add(families[metric.name], metric)
        yield from families.values()

    def describe(self) -> Iterator[_Family]:
        """Called once at registration; there is nothing to say before somebody asks."""
        return iter(())


def _family_of(metric: Metric) -> _Family:
    labels = tuple(metric.labels)
    match metric:
        case Gauge():
            return GaugeMetricFamily(metric.name, metric.help, labels=labels)
        case Counter():
            return CounterMetricFamily(metric.name, metric.help, labels=labels)
        case Histogram():
            return HistogramMetricFamily(metric.name, metric.help, labels=labels)


def _add(family: _Family, metric: Metric) -> None:
    labels = tuple(metric.labels.values())
    if isinstance(metric, Histogram) and isinstance(family, HistogramMetricFamily):
        bounds = (*map(floatToGoString, metric.bounds), "+Inf")
        family.add_metric(labels, list(zip(bounds, accumulate(metric.counts), strict=True)), metric.sum)
    elif not isinstance(metric, Histogram) and not isinstance(family, HistogramMetricFamily):
        family.add_metric(labels, metric.value)
