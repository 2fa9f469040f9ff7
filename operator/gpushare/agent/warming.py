"""Loads what an agent needs sooner or later, but not for its first list. Called by the agent, in a thread."""

from __future__ import annotations

import importlib
from typing import Final

_LATE: Final = (
    "gpushare.allocation.preferring",
    "gpushare.api.checking",
    "gpushare.api.converting",
    "gpushare.api.documents",
    "gpushare.api.schema",
    "gpushare.api.wording",
    "gpushare.kubelet.podresources",
)
"""Which devices to prefer, and how to read a configuration: a tenth of a second that nobody is to wait for."""


def load() -> None:
    """Loads all of it; a second time costs nothing."""
    for name in _LATE:
        importlib.import_module(name)
