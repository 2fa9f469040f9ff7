"""Labels of the machine, and of the moment."""

from __future__ import annotations

from collections.abc import Mapping

from gpushare.labels.facts import HostFacts
from gpushare.labels.values import sanitise


def build_labels(facts: HostFacts) -> Mapping[str, str]:
    """Product name of the machine; `unknown` where it has none."""
    return {"gpu.machine": sanitise(facts.machine) or "unknown"}


def build_timestamp(facts: HostFacts) -> Mapping[str, str]:
    """When these labels began to hold, where that is wanted."""
    return {} if facts.timestamp is None else {"gfd.timestamp": str(facts.timestamp)}
