"""Label selectors as objects of `apps` and `batch` hold them. Used by all workload controllers."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from gpushare.domain.manifests import Manifest


def is_match(selector: Mapping[str, Any], labels: Mapping[str, str]) -> bool:
    """Whether labels pass a `metav1.LabelSelector`. An empty selector takes everything."""
    return all(labels.get(key) == value for key, value in (selector.get("matchLabels") or {}).items()) and all(
        is_expression_match(expression, labels) for expression in selector.get("matchExpressions") or []
    )


def is_expression_match(expression: Mapping[str, Any], labels: Mapping[str, str]) -> bool:
    """Whether labels pass one requirement: In, NotIn, Exists, DoesNotExist, and for nodes Gt and Lt."""
    check = _OPERATORS.get(expression["operator"])
    return check is not None and check(labels.get(expression["key"]), expression.get("values") or [])


def labels_of(manifest: Manifest) -> Mapping[str, str]:
    """The labels of an object."""
    return manifest["metadata"].get("labels") or {}


def _order(value: str | None, values: Sequence[str]) -> int | None:
    """-1, 0 or 1 as a label is less than, equal to or more than the given number; None when it is no number."""
    if value is None or not value.removeprefix("-").isdecimal():
        return None
    return (int(value) > int(values[0])) - (int(value) < int(values[0]))


_OPERATORS: Mapping[str, Callable[[str | None, Sequence[str]], bool]] = {
    "In": lambda value, values: value in values,
    "NotIn": lambda value, values: value not in values,
    "Exists": lambda value, _: value is not None,
    "DoesNotExist": lambda value, _: value is None,
    "Gt": lambda value, values: _order(value, values) == 1,
    "Lt": lambda value, values: _order(value, values) == -1,
}
