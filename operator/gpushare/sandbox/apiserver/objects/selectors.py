"""Label and field selectors: parsed as a real server parses them, refused with its texts.

Called for lists and watches; label selectors of objects (workloads, aggregated roles, budgets, and with numbers the
affinity of pods to nodes) are read into the same values, by the small controllers of the sandbox too.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from gpushare.domain.manifests import Manifest
from gpushare.sandbox.apiserver import statuses
from gpushare.sandbox.apiserver.objects import syntax
from gpushare.sandbox.apiserver.resources import Resource

_TOKEN = re.compile(r"\s*(==|!=|=|!|>|<|,|\(|\)|[^\s=!,()<>]+)")
_SYMBOLS = frozenset({"=", "==", "!=", "!", ",", "(", ")", ">", "<"})
_OPERATORS = "in, notin, =, ==, !=, gt, lt"
_OF_OBJECTS = {"In": "in", "NotIn": "notin", "Exists": "exists", "DoesNotExist": "!", "Gt": ">", "Lt": "<"}
_NUMBER = re.compile(r"[+-]?[0-9]+")
_COMMON_FIELDS = ("metadata.name", "metadata.namespace")


@dataclass(frozen=True, slots=True)
class Requirement:
    """One condition on a label or a field."""

    key: str
    operator: str
    """`in`, `notin`, `exists`, `!`, `>` or `<`."""
    values: frozenset[str] = frozenset()

    def holds(self, labels: Mapping[str, str]) -> bool:
        """Whether an object with these labels is selected."""
        value = labels.get(self.key)
        match self.operator:
            case "in":
                return value in self.values
            case "notin":
                return value not in self.values
            case "exists":
                return value is not None
            case "!":
                return value is None
            case _:
                return self._compares(value)

    def _compares(self, value: str | None) -> bool:
        numbers = [int(text) for text in (value or "", *self.values) if _NUMBER.fullmatch(text)]
        match numbers:
            case [found, limit]:
                return found > limit if self.operator == ">" else found < limit
            case _:
                return False


@dataclass(frozen=True, slots=True)
class Selector:
    """What a list or a watch asks for."""

    labels: tuple[Requirement, ...] = ()
    fields: tuple[Requirement, ...] = ()

    @property
    def is_empty(self) -> bool:
        """Whether everything is selected."""
        return not self.labels and not self.fields

    def matches(self, obj: Manifest) -> bool:
        """Whether an object is selected."""
        if self.labels and not holds(self.labels, labels_of(obj)):
            return False
        # No generator: a store asks this of every watch at every change.
        for need in self.fields:  # noqa: SIM110
            if not need.holds({need.key: _field(obj, need.key)}):
                return False
        return True


def parse(resource: Resource, query: Mapping[str, str]) -> Selector:
    """The selectors of a request. Raises `ApiError` 400 for a malformed one, or for a field that the kind does not offer."""
    return Selector(
        parse_labels(query.get("labelSelector", "")), _parse_fields(resource, query.get("fieldSelector", ""))
    )


def parse_labels(text: str) -> tuple[Requirement, ...]:
    """Reads `a=b,c in (d,e),!f`. Raises `ApiError` 400."""
    return tuple(_Parser(text).requirements()) if text.strip() else ()


def parse_object(selector: Mapping[str, Any]) -> tuple[Requirement, ...]:
    """Reads a LabelSelector of an object: `matchLabels` and `matchExpressions`."""
    labels = [Requirement(key, "in", frozenset({value})) for key, value in (selector.get("matchLabels") or {}).items()]
    return (*labels, *(_of_expression(each) for each in selector.get("matchExpressions") or ()))


def _of_expression(expression: Mapping[str, Any]) -> Requirement:
    operator = _OF_OBJECTS.get(expression["operator"])
    if operator is None:
        # Chooses nothing; validation says why.
        return Requirement(expression["key"], "in")
    return Requirement(expression["key"], operator, frozenset(expression.get("values") or ()))


def text(selector: Mapping[str, Any]) -> str:
    """A LabelSelector in the form that clients type."""
    if "matchLabels" not in selector and "matchExpressions" not in selector:
        return ",".join(f"{key}={value}" for key, value in sorted(selector.items()))
    parts = [f"{key}={value}" for key, value in sorted((selector.get("matchLabels") or {}).items())]
    for each in selector.get("matchExpressions") or ():
        values = f"({','.join(each.get('values') or ())})"
        forms = {"In": f"{each['key']} in {values}", "NotIn": f"{each['key']} notin {values}",
                 "Exists": each["key"], "DoesNotExist": f"!{each['key']}"}  # fmt: skip
        parts.append(forms[each["operator"]])
    return ",".join(parts)


def holds(requirements: Iterable[Requirement], labels: Mapping[str, str]) -> bool:
    """Whether labels meet all requirements."""
    return all(need.holds(labels) for need in requirements)


def is_match(selector: Mapping[str, Any], labels: Mapping[str, str]) -> bool:
    """Whether labels pass a LabelSelector of an object. An empty selector takes everything."""
    return holds(parse_object(selector), labels)


def labels_of(obj: Manifest) -> Mapping[str, str]:
    """The labels of an object."""
    return obj["metadata"].get("labels") or {}


class _Parser:
    """Reads one label selector, token by token."""

    def __init__(self, text: str) -> None:
        self._tokens = _TOKEN.findall(text)

    def requirements(self) -> list[Requirement]:
        """All requirements, which are separated by commas."""
        found = [self._requirement()]
        while self._tokens:
            self._expect(",", "',' or 'end of string'")
            found.append(self._requirement())
        return found

    def _requirement(self) -> Requirement:
        absent = self._peek() == "!"
        if absent:
            self._next()
        key = self._word("identifier after ','" if not absent else "identifier")
        for problem in syntax.qualified_name(key):
            raise statuses.bad_request(f'unable to parse requirement: <nil>: Invalid value: "{key}": {problem}')
        if absent:
            return Requirement(key, "!")
        if self._peek() in ("", ","):
            return Requirement(key, "exists")
        return self._condition(key, self._next())

    def _condition(self, key: str, operator: str) -> Requirement:
        match operator:
            case "=" | "==" | "!=":
                value = "" if self._peek() in ("", ",") else self._value(key)
                return Requirement(key, "notin" if operator == "!=" else "in", frozenset({value}))
            case "in" | "notin":
                return Requirement(key, operator, frozenset(self._set(key)))
            case ">" | "<" | "gt" | "lt":
                return Requirement(key, {"gt": ">", "lt": "<"}.get(operator, operator), frozenset({self._value(key)}))
            case _:
                raise statuses.bad_request(f"unable to parse requirement: found '{operator}', expected: {_OPERATORS}")

    def _set(self, key: str) -> list[str]:
        self._expect("(", "'('")
        values = [] if self._peek() == ")" else [self._value(key)]
        while self._peek() == ",":
            self._next()
            values.append(self._value(key))
        self._expect(")", "',' or ')'")
        return values

    def _value(self, key: str) -> str:
        value = self._word("identifier")
        for problem in syntax.label_value(value):
            raise statuses.bad_request(
                f'unable to parse requirement: values[0][{key}]: Invalid value: "{value}": {problem}'
            )
        return value

    def _word(self, wanted: str) -> str:
        if self._peek() in _SYMBOLS or not self._tokens:
            raise statuses.bad_request(f"unable to parse requirement: found '{self._peek()}', expected: {wanted}")
        return self._next()

    def _expect(self, token: str, wanted: str) -> None:
        if self._peek() != token:
            raise statuses.bad_request(f"unable to parse requirement: found '{self._peek()}', expected: {wanted}")
        self._next()

    def _peek(self) -> str:
        return self._tokens[0] if self._tokens else ""

    def _next(self) -> str:
        return str(self._tokens.pop(0))


def _parse_fields(resource: Resource, text: str) -> tuple[Requirement, ...]:
    return tuple(_parse_field(resource, part) for part in text.split(",") if part)


def _parse_field(resource: Resource, part: str) -> Requirement:
    found = re.fullmatch(r"([^=!]+)(!=|==|=)(.*)", part)
    if not found:
        raise statuses.bad_request(f"invalid selector: '{part}'; can't understand '{part}'")
    name, operator, value = found.groups()
    if name not in _COMMON_FIELDS and name not in resource.fields:
        if resource.fields or resource.custom:
            raise statuses.bad_request(f"field label not supported: {name}")
        raise statuses.bad_request(
            f'"{name}" is not a known field selector: only "metadata.name", "metadata.namespace"'
        )
    stored = resource.view.stored_field(name) if resource.view else name
    return Requirement(stored, "notin" if operator == "!=" else "in", frozenset({value}))


def _podips(obj: Manifest) -> str:
    return ",".join(entry.get("ip", "") for entry in obj.get("status", {}).get("podIPs", []))


_SPECIAL: Mapping[str, Callable[[Manifest], str]] = {
    # A core event has its source in a structure, and a client that wrote reportingComponent means the same.
    "source": lambda obj: (obj.get("source") or {}).get("component") or obj.get("reportingComponent", ""),
    "status.podIPs": _podips,
}


def _field(obj: Manifest, path: str) -> str:
    if path in _SPECIAL:
        return _SPECIAL[path](obj)
    value: Any = obj
    for part in path.split("."):
        value = value.get(part) if isinstance(value, dict) else None
    if isinstance(value, bool):
        return str(value).lower()
    if value is None:
        return "false" if path in ("spec.unschedulable", "spec.hostNetwork") else ""
    return str(value)
