"""Objects seen as sets of fields: which an object has, in which two differ, and an object without some of them.

The walks follow the schema the way server-side apply does: structs and maps by field, lists by key where they are maps,
by value where they are sets, anything else as one. Called by `applying`.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from gpushare.sandbox.apiserver.objects import always_present
from gpushare.sandbox.apiserver.objects.schemas import Schema
from gpushare.sandbox.apiserver.patching import fieldsets
from gpushare.sandbox.apiserver.patching.fieldsets import EMPTY, FieldSet

MISSING: Final = object()
_LEAF: Final[FieldSet] = {}
_DEFAULT_KEYS: Final[Mapping[str, Any]] = {"protocol": "TCP"}
"""Values of list keys that built-in kinds may leave out."""


@dataclass(frozen=True, slots=True)
class Comparison:
    """In which fields two objects differ."""

    added: FieldSet
    modified: FieldSet
    removed: FieldSet

    @property
    def is_same(self) -> bool:
        """Whether there is no difference."""
        return not (self.added or self.modified or self.removed)

    @property
    def written(self) -> FieldSet:
        """What the newer object says differently."""
        return fieldsets.union(self.modified, self.added)

    def without(self, ignored: FieldSet) -> Comparison:
        """The same without some fields and all below them."""
        if not ignored:
            return self
        return Comparison(*(fieldsets.without(part, ignored) for part in (self.added, self.modified, self.removed)))


def fields_of(value: Any, schema: Schema) -> FieldSet:
    """The fields that an applied configuration claims: its leaves, list items, and keys of maps."""
    result: dict[str, Any] = {}
    if is_granular_map(value, schema):
        for name, item in value.items():
            itself, children = _claim(item, schema.child(name))
            if itself or children or not schema.declares(name):
                itself = itself or not schema.declares(name)
                result[fieldsets.field_step(name)] = fieldsets.node_of(children, itself=itself)
    elif is_keyed_list(value, schema):
        for step, item in keyed_items(value, schema):
            result[step] = fieldsets.node_of(_claim(item, schema.items)[1], itself=True)
    return result


def compare(old: Any, new: Any, schema: Schema) -> Comparison:
    """In which fields `new` differs from `old`; both are whole objects."""
    added, modified, removed = _compare_maps(old, new, schema)
    return Comparison(added, modified, removed)


def remove(value: Any, fields: FieldSet, schema: Schema) -> Any:
    """`value` without some of its fields, and without maps and lists that have become empty by that."""
    if is_granular_map(value, schema):
        kept: dict[str, Any] = {}
        for name, item in value.items():
            node = fields.get(fieldsets.field_step(name))
            if node is None:
                kept[name] = item
            elif not fieldsets.has_itself(node):
                rest = remove(item, node, schema.child(name))
                if rest is not MISSING:
                    kept[name] = rest
        return kept or MISSING
    if is_keyed_list(value, schema):
        rest = [_remove_below(item, fields.get(step), schema.items) for step, item in keyed_items(value, schema)]
        return [item for item in rest if item is not MISSING] or MISSING
    return value


def with_named_fields(fields: FieldSet, schema: Schema) -> FieldSet:
    """The set and the declared fields on the way to what is in it, so that a struct goes when all below it goes."""
    result: dict[str, Any] = {}
    for step, node in fields.items():
        if step == fieldsets.SELF:
            result[step] = node
            continue
        is_field = step.startswith("f:")
        child = schema.child(step[2:]) if is_field else schema.items
        itself = fieldsets.has_itself(node) or (is_field and schema.declares(step[2:]))
        children = with_named_fields({key: value for key, value in node.items() if key != fieldsets.SELF}, child)
        result[step] = fieldsets.node_of(children, itself=itself)
    return result


def merge(live: Any, config: Any, schema: Schema) -> Any:
    """`live` with what `config` says; neither is changed."""
    if is_granular_map(live, schema) and is_granular_map(config, schema):
        result = dict(live)
        for name, value in config.items():
            result[name] = merge(live[name], value, schema.child(name)) if name in live else value
        return result
    if is_keyed_list(live, schema) and is_keyed_list(config, schema):
        return _merge_lists(live, config, schema)
    return config


def is_granular_map(value: Any, schema: Schema) -> bool:
    """Whether a value is a map whose fields have owners of their own."""
    return isinstance(value, dict) and not schema.is_atomic_map


def is_keyed_list(value: Any, schema: Schema) -> bool:
    """Whether a value is a list whose items have owners of their own."""
    return isinstance(value, list) and schema.list_type != "atomic"


def keyed_items(items: list[Any], schema: Schema) -> Iterator[tuple[str, Any]]:
    """The items of a list with the step that leads to each."""
    if schema.list_type == "set":
        return ((fieldsets.value_step(item), item) for item in items)
    return ((_item_step(item, schema), item) for item in items)


def _item_step(item: Any, schema: Schema) -> str:
    keys: dict[str, Any] = {}
    for key in schema.list_keys:
        value = item.get(key) if isinstance(item, Mapping) else None
        if value is None:
            value = schema.items.child(key).raw.get("default", _DEFAULT_KEYS.get(key))
        if value is not None:
            keys[key] = value
    return fieldsets.item_step(keys)


def _claim(value: Any, schema: Schema) -> tuple[bool, FieldSet]:
    """Whether a value is claimed as one, and what is claimed below it."""
    if is_granular_map(value, schema):
        return not value, fields_of(value, schema)
    if is_keyed_list(value, schema):
        return False, fields_of(value, schema)
    return True, EMPTY


def _remove_below(item: Any, node: FieldSet | None, schema: Schema) -> Any:
    if node is None:
        return item
    return MISSING if fieldsets.has_itself(node) else remove(item, node, schema)


_Parts = tuple[FieldSet, FieldSet, FieldSet]
_SAME: Final[_Parts] = (EMPTY, EMPTY, EMPTY)


def _compare_maps(old: Mapping[str, Any], new: Mapping[str, Any], schema: Schema) -> _Parts:
    always = always_present.fields_of(schema)
    steps = []
    for name in new.keys() | old.keys():
        zero = always.get(name, MISSING)
        before, after = old.get(name, zero), new.get(name, zero)
        if before is not after and before != after:
            steps.append((fieldsets.field_step(name), before, after, schema.child(name)))
    return _collect(steps)


def _compare_lists(old: list[Any], new: list[Any], schema: Schema) -> _Parts:
    before, after = dict(keyed_items(old, schema)), dict(keyed_items(new, schema))
    steps = []
    for step in after.keys() | before.keys():
        left, right = before.get(step, MISSING), after.get(step, MISSING)
        if left != right:
            steps.append((step, left, right, schema.items))
    return _collect(steps)


def _collect(steps: list[tuple[str, Any, Any, Schema]]) -> _Parts:
    added: dict[str, Any] = {}
    modified: dict[str, Any] = {}
    removed: dict[str, Any] = {}
    for step, before, after, schema in steps:
        if before is MISSING:
            added[step] = _whole(after, schema)
        elif after is MISSING:
            removed[step] = _whole(before, schema)
        elif is_granular_map(before, schema) and is_granular_map(after, schema):
            _place(step, _compare_maps(before, after, schema), added, modified, removed)
        elif is_keyed_list(before, schema) and is_keyed_list(after, schema):
            _place(step, _compare_lists(before, after, schema), added, modified, removed)
        else:
            modified[step] = _whole(after, schema)
    return added, modified, removed


def _place(step: str, parts: _Parts, *targets: dict[str, Any]) -> None:
    for part, target in zip(parts, targets, strict=True):
        if part:
            target[step] = part


def _whole(value: Any, schema: Schema) -> FieldSet:
    """A value and everything in it, each map and list itself included."""
    if is_granular_map(value, schema):
        children = {fieldsets.field_step(name): _whole(item, schema.child(name)) for name, item in value.items()}
        return fieldsets.node_of(children, itself=True)
    if is_keyed_list(value, schema):
        return fieldsets.node_of(
            {step: _whole(item, schema.items) for step, item in keyed_items(value, schema)}, itself=True
        )
    return _LEAF


def _merge_lists(live: list[Any], config: list[Any], schema: Schema) -> list[Any]:
    """The items of both: shared ones in the order of `config`, those of `live` alone where they stood."""
    mine, theirs = dict(keyed_items(config, schema)), dict(keyed_items(live, schema))
    shared = deque(step for step in mine if step in theirs)
    left, right = deque(theirs), deque(mine)
    result: list[Any] = []
    while left or right:
        if left and left[0] not in mine:
            result.append(theirs[left.popleft()])
        elif left and (not shared or left[0] != shared[0]):
            # Its place is where `config` has it: before this, or still to come.
            left.popleft()
        else:
            step = right.popleft()
            item = mine[step]
            if shared and shared[0] == step:
                shared.popleft()
                item = merge(theirs[step], item, schema.items)
            result.append(item)
    return result
