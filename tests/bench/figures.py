"""Figures of one run: what was measured, how often, and what it should be."""

from __future__ import annotations

import json
import platform
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from statistics import quantiles


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """One measured thing."""

    name: str
    unit: str
    values: tuple[float, ...]
    target: float | None = None
    """The most that the design allows for the p50; None: shown for comparison only."""

    def at(self, percent: int) -> float:
        """A percentile; of a single value, that value."""
        if len(self.values) == 1:
            return self.values[0]
        return quantiles(self.values, n=100, method="inclusive")[percent - 1]

    @property
    def is_met(self) -> bool | None:
        """Whether the target is reached; None where there is none."""
        return None if self.target is None else self.at(50) <= self.target


def ratio(name: str, one: Figure, other: Figure, percent: int, target: float | None) -> Figure:
    """How much one figure is of another, both of this run."""
    return Figure(name=name, unit="x", values=(one.at(percent) / other.at(percent),), target=target)


def build_table(figures: Iterable[Figure]) -> str:
    """For people; also the form of docs/benchmarks.md."""
    rows = ["| what | p50 | p99 | n | target | |", "|---|---|---|---|---|---|"]
    for figure in figures:
        target = "" if figure.target is None else f"{_shown(figure.target)} {figure.unit}"
        verdict = {None: "", True: "met", False: "**missed**"}[figure.is_met]
        rows.append(
            f"| {figure.name} | {_shown(figure.at(50))} {figure.unit} | {_shown(figure.at(99))} {figure.unit} "
            f"| {len(figure.values)} | {target} | {verdict} |"
        )
    return "\n".join(rows)


def _shown(value: float) -> str:
    """Three digits, and counts as they are."""
    return f"{value:,.0f}" if value >= 1000 else f"{value:.3g}"


def build_json(figures: Iterable[Figure]) -> str:
    """For programs; one object with a list of figures."""
    body = {
        "machine": {"python": platform.python_version(), "machine": platform.machine()},
        "figures": [
            {
                "name": figure.name,
                "unit": figure.unit,
                "n": len(figure.values),
                "p50": figure.at(50),
                "p99": figure.at(99),
                "target": figure.target,
                "met": figure.is_met,
            }
            for figure in figures
        ],
    }
    return json.dumps(body, indent=2)


def repeat(times: int, measure: Callable[[], float]) -> tuple[float, ...]:
    """The same measurement, some times."""
    return tuple(measure() for _ in range(times))


def scaled(values: Sequence[float], factor: float) -> tuple[float, ...]:
    """Values in another unit."""
    return tuple(value * factor for value in values)
