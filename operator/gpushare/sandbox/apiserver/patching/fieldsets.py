"""Sets of fields, in the form in which `managedFields` holds them (fieldsV1), and the algebra on them.

A set is a tree of dicts. A key is one step: `f:name` (a field), `k:{"name":"c"}` (the list item with these keys),
`v:"x"` (the list item with this value). A step leads to what is in the set below it; `{}` there means that the step
itself is in the set and nothing below it, a key `.` that the step itself is in the set too. Trees are never changed in
place, so parts of them may be shared.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any, Final, TypeAlias

from gpushare.sandbox.apiserver.objects.jsonvalues import compact

FieldSet: TypeAlias = Mapping[str, Any]

EMPTY: Final[FieldSet] = {}
SELF: Final = "."
_LEAF: Final[FieldSet] = {}


def field_step(name: str) -> str:
    """The step to a field or to a key of a map."""
    return f"f:{name}"


def item_step(keys: Mapping[str, Any]) -> str:
    """The step to a list item that has these values in its key fields."""
    return f"k:{compact(keys)}"


def value_step(value: Any) -> str:
    """The step to a list item that is its own key."""
    return f"v:{compact(value)}"


def has_itself(node: FieldSet) -> bool:
    """Whether the step that leads to `node` is in the set, not only something below it."""
    return not node or SELF in node


def node_of(children: Mapping[str, Any], *, itself: bool) -> FieldSet:
    """A node from its parts. Without children and not itself in the set, there is no such node: callers leave it out."""
    if not itself:
        return children
    return {SELF: _LEAF, **children} if children else _LEAF


def union(left: FieldSet, right: FieldSet) -> FieldSet:
    """What is in one of the two."""
    if not left or not right:
        return left or right
    return {**left, **{step: _joined(left[step], node) if step in left else node for step, node in right.items()}}


def difference(left: FieldSet, right: FieldSet) -> FieldSet:
    """What is in the left set and not in the right one."""
    if not right:
        return left
    result: dict[str, Any] = {}
    for step, node in left.items():
        other = right.get(step)
        if other is None:
            result[step] = node
        elif step != SELF:
            children = difference(_children(node), _children(other))
            itself = has_itself(node) and not has_itself(other)
            if itself or children:
                result[step] = node_of(children, itself=itself)
    return result


def intersection(left: FieldSet, right: FieldSet) -> FieldSet:
    """What is in both."""
    result: dict[str, Any] = {}
    for step, node in left.items():
        other = right.get(step)
        if other is None or step == SELF:
            continue
        children = intersection(_children(node), _children(other))
        itself = has_itself(node) and has_itself(other)
        if itself or children:
            result[step] = node_of(children, itself=itself)
    return result


def without(left: FieldSet, prefixes: FieldSet) -> FieldSet:
    """The left set without the fields of the right one and everything below them."""
    result: dict[str, Any] = {}
    for step, node in left.items():
        prefix = prefixes.get(step)
        if prefix is None:
            result[step] = node
        elif step != SELF and not has_itself(prefix):
            children = without(_children(node), prefix)
            if has_itself(node) or children:
                result[step] = node_of(children, itself=has_itself(node))
    return result


def ordered(fields: FieldSet) -> FieldSet:
    """The same set, its steps in the order in which a real server writes them."""
    return {step: ordered(fields[step]) for step in sorted(fields)}


def of_paths(*paths: tuple[str, ...]) -> FieldSet:
    """The set of some fields, each named by the fields on the way to it."""
    result: FieldSet = EMPTY
    for path in paths:
        node: FieldSet = _LEAF
        for name in reversed(path):
            node = {field_step(name): node}
        result = union(result, node)
    return result


def paths(fields: FieldSet, prefix: str = "") -> Iterator[str]:
    """Each field of the set, as messages spell it: `.spec.containers[name="c"].image`; those of one level first."""
    steps = [(prefix + _text(step), fields[step]) for step in sorted(fields) if step != SELF]
    yield from (path for path, node in steps if has_itself(node))
    for path, node in steps:
        yield from paths(node, path)


def _children(node: FieldSet) -> FieldSet:
    return {step: child for step, child in node.items() if step != SELF} if SELF in node else node


def _joined(left: FieldSet, right: FieldSet) -> FieldSet:
    if left == right:
        return left
    itself = has_itself(left) or has_itself(right)
    return node_of(union(_children(left), _children(right)), itself=itself)


def _text(step: str) -> str:
    kind, content = step[:2], step[2:]
    if kind == "f:":
        return f".{content}"
    if kind == "k:":
        keys = json.loads(content)
        return f"[{','.join(f'{name}={json.dumps(value, ensure_ascii=False)}' for name, value in keys.items())}]"
    return f"[={content}]"
