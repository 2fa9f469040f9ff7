"""Rules of how DaemonSets and Deployments replace their pods. Called by `workloads`."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

from gpushare.sandbox.apiserver import field_errors
from gpushare.sandbox.apiserver.statuses import Cause

_ROLLING: Final = "RollingUpdate"
_PERCENT: Final = re.compile(r"([0-9]+)%")
_NO_PERCENT: Final = (
    "a valid percent string must be a numeric string followed by an ending '%' (e.g. '1%',  or '93%', regex used for "
    "validation is '[0-9]+%')"
)


def check_daemon_set(strategy: Mapping[str, Any]) -> Iterator[Cause]:
    """`spec.updateStrategy` of a DaemonSet: old pods go before new ones come, or the other way round, never both."""
    field = "spec.updateStrategy"
    yield from _check_type(strategy, field, (_ROLLING, "OnDelete"))
    rolling = strategy.get("rollingUpdate")
    if strategy.get("type") != _ROLLING or rolling is None:
        return
    field += ".rollingUpdate"
    yield from _check_amounts(rolling, field)
    unavailable, surge = rolling.get("maxUnavailable", 0), rolling.get("maxSurge", 0)
    if _is_none(unavailable) and _is_none(surge):
        yield field_errors.required(f"{field}.maxUnavailable", "cannot be 0 when maxSurge is 0")
    elif not _is_none(unavailable) and not _is_none(surge):
        yield field_errors.invalid(f"{field}.maxSurge", surge, "may not be set when maxUnavailable is non-zero")


def check_deployment(strategy: Mapping[str, Any]) -> Iterator[Cause]:
    """`spec.strategy` of a Deployment."""
    field = "spec.strategy"
    yield from _check_type(strategy, field, ("Recreate", _ROLLING))
    rolling = strategy.get("rollingUpdate")
    if rolling is None:
        return
    field += ".rollingUpdate"
    if strategy.get("type") == "Recreate":
        yield field_errors.forbidden(field, "may not be specified when strategy `type` is 'Recreate'")
        return
    yield from _check_amounts(rolling, field)
    unavailable, surge = rolling.get("maxUnavailable", 0), rolling.get("maxSurge", 0)
    if _is_none(unavailable) and _is_none(surge):
        yield field_errors.invalid(f"{field}.maxUnavailable", unavailable, "may not be 0 when `maxSurge` is 0")


def _check_type(strategy: Mapping[str, Any], field: str, allowed: tuple[str, ...]) -> Iterator[Cause]:
    if strategy.get("type", _ROLLING) not in allowed:
        shown = {"Type": strategy["type"], "RollingUpdate": strategy.get("rollingUpdate")}
        yield field_errors.unsupported(field, shown, allowed)


def _check_amounts(rolling: Mapping[str, Any], field: str) -> Iterator[Cause]:
    for name in ("maxUnavailable", "maxSurge"):
        amount = rolling.get(name, 0)
        percent = _PERCENT.fullmatch(amount) if isinstance(amount, str) else None
        if isinstance(amount, str) and percent is None:
            yield field_errors.invalid(f"{field}.{name}", amount, _NO_PERCENT)
        elif percent is not None and int(percent[1]) > 100:
            yield field_errors.invalid(f"{field}.{name}", amount, "must not be greater than 100%")
        elif isinstance(amount, int) and amount < 0:
            yield field_errors.invalid(f"{field}.{name}", amount, "must be greater than or equal to 0")


def _is_none(amount: int | str) -> bool:
    percent = _PERCENT.fullmatch(amount) if isinstance(amount, str) else None
    return int(percent[1]) == 0 if percent else amount == 0
