"""Rules of what pods want of their nodes. Called for pods and for the templates that make them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from gpushare.sandbox.apiserver import field_errors
from gpushare.sandbox.apiserver.objects import syntax
from gpushare.sandbox.apiserver.statuses import Cause

_FIELD: Final = "metadata.name"
"""The only field of nodes that may be asked for."""


def check_node_affinity(affinity: Mapping[str, Any], field: str) -> Iterator[Cause]:
    """`affinity.nodeAffinity` of a pod."""
    required = affinity.get("requiredDuringSchedulingIgnoredDuringExecution")
    if required is not None:
        here = f"{field}.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms"
        terms = required.get("nodeSelectorTerms") or ()
        if not terms:
            yield field_errors.required(here, "must have at least one node selector term")
        for number, term in enumerate(terms):
            yield from _check_term(term, field_errors.at(here, number))
    here = f"{field}.preferredDuringSchedulingIgnoredDuringExecution"
    for number, each in enumerate(affinity.get("preferredDuringSchedulingIgnoredDuringExecution") or ()):
        weight = each.get("weight", 0)
        if not 0 < weight <= 100:
            yield field_errors.invalid(field_errors.at(here, number, "weight"), weight, "must be in the range 1-100")
        yield from _check_term(each.get("preference") or {}, field_errors.at(here, number, "preference"))


def _check_term(term: Mapping[str, Any], field: str) -> Iterator[Cause]:
    for number, each in enumerate(term.get("matchExpressions") or ()):
        here = field_errors.at(f"{field}.matchExpressions", number)
        yield from _check_values(each, here)
        key = each.get("key", "")
        yield from field_errors.all_invalid(f"{here}.key", key, syntax.qualified_name(key))
        for position, value in enumerate(each.get("values") or ()):
            place = field_errors.at(f"{here}.values", position)
            yield from field_errors.all_invalid(place, value, syntax.label_value(value))
    for number, each in enumerate(term.get("matchFields") or ()):
        if each.get("key") != _FIELD:
            here = field_errors.at(f"{field}.matchFields", number, "key")
            yield field_errors.invalid(here, each.get("key", ""), "not a valid field selector key")


def _check_values(expression: Mapping[str, Any], field: str) -> Iterator[Cause]:
    operator, values = expression.get("operator", ""), expression.get("values") or ()
    match operator:
        case "In" | "NotIn":
            if not values:
                yield field_errors.required(f"{field}.values", "must be specified when `operator` is 'In' or 'NotIn'")
        case "Exists" | "DoesNotExist":
            if values:
                why = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'"
                yield field_errors.forbidden(f"{field}.values", why)
        case "Gt" | "Lt":
            if len(values) != 1:
                why = "must be specified single value when `operator` is 'Lt' or 'Gt'"
                yield field_errors.required(f"{field}.values", why)
        case _:
            yield field_errors.invalid(f"{field}.operator", operator, "not a valid selector operator")
