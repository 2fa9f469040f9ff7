"""Requests, limits and capacities: which names there are, which amounts make sense."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from gpushare.sandbox.apiserver import field_errors
from gpushare.sandbox.apiserver.objects import quantities, syntax
from gpushare.sandbox.apiserver.statuses import Cause

_STANDARD: Final = frozenset({"cpu", "memory", "ephemeral-storage"})
_HUGE_PAGES: Final = "hugepages-"
_NATIVE_DOMAIN: Final = "kubernetes.io/"
_QUOTA_PREFIX: Final = "requests."


def is_extended(name: str) -> bool:
    """Whether a resource is one that plugins or administrators add: whole numbers, requests equal to limits."""
    if "/" not in name or _NATIVE_DOMAIN in name or name.startswith(_QUOTA_PREFIX):
        return False
    return not syntax.qualified_name(f"{_QUOTA_PREFIX}{name}")


def check_requirements(resources: Mapping[str, Any], field: str) -> Iterator[Cause]:
    """The `resources` of a container."""
    limits, requests = resources.get("limits") or {}, resources.get("requests") or {}
    limits_field, requests_field = f"{field}.limits", f"{field}.requests"
    for name, amount in sorted(limits.items()):
        yield from _check_entry(name, amount, field_errors.key(limits_field, name))
    for name, amount in sorted(requests.items()):
        yield from _check_entry(name, amount, field_errors.key(requests_field, name))
        overcommit = not is_extended(name) and not name.startswith(_HUGE_PAGES)
        if name not in limits:
            if not overcommit:
                yield field_errors.required(limits_field, "Limit must be set for non overcommitable resources")
            continue
        asked, most = quantities.parse(amount), quantities.parse(limits[name])
        if asked != most and not overcommit:
            why = f"must be equal to {name} limit of {limits[name]}"
            yield field_errors.invalid(requests_field, amount, why)
        elif asked > most:
            why = f"must be less than or equal to {name} limit of {limits[name]}"
            yield field_errors.invalid(requests_field, amount, why)


def check_amounts(amounts: Mapping[str, Any], field: str) -> Iterator[Cause]:
    """The capacity of a node, or what of it can be given out."""
    for name, amount in sorted(amounts.items()):
        yield from _check_amount(name, amount, f"{field}.{name}")


def _check_entry(name: str, amount: Any, field: str) -> Iterator[Cause]:
    problems = syntax.qualified_name(name)
    yield from field_errors.all_invalid(field, name, problems)
    if not problems and "/" not in name and name not in _STANDARD and not name.startswith(_HUGE_PAGES):
        yield field_errors.invalid(field, name, "must be a standard resource for containers")
    elif not problems and "/" in name and _NATIVE_DOMAIN not in name and not is_extended(name):
        yield field_errors.invalid(field, name, "doesn't follow extended resource name standard")
    yield from _check_amount(name, amount, field)


def _check_amount(name: str, amount: Any, field: str) -> Iterator[Cause]:
    value = quantities.parse(amount)
    if value < 0:
        yield field_errors.invalid(field, amount, "must be greater than or equal to 0")
    if is_extended(name) and value.denominator != 1:
        yield field_errors.invalid(field, amount, "must be an integer")
