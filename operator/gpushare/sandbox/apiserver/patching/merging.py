"""Merge patches: the plain one, and the strategic one that knows the schema.

Called by the write path with the stored object; nothing here changes its arguments. Parts that a patch does not touch are
shared between the old object and the result, so whoever goes on to change the result copies what it changes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from gpushare.sandbox.apiserver import statuses
from gpushare.sandbox.apiserver.objects.jsonvalues import printed
from gpushare.sandbox.apiserver.objects.schemas import Schema

_DIRECTIVE: Final = "$patch"
_RETAIN: Final = "$retainKeys"
_ORDER: Final = "$setElementOrder/"
_REMOVE: Final = "$deleteFromPrimitiveList/"


def merge_patch(old: Any, patch: Any) -> Any:
    """JSON merge patch (RFC 7386): null removes, objects merge, everything else replaces."""
    if not isinstance(patch, Mapping):
        return patch
    result = dict(old) if isinstance(old, Mapping) else {}
    for key, value in patch.items():
        if value is None:
            result.pop(key, None)
        else:
            result[key] = merge_patch(result.get(key), value)
    return result


def strategic_merge(old: Any, patch: Any, schema: Schema) -> Any:
    """Strategic merge patch: as a merge patch, but lists of things with names merge by name, as the schema says.

    Raises:
        ApiError: a list element has no merge key (400), or a directive is unknown (400).
    """
    if not isinstance(patch, Mapping):
        return patch
    if _DIRECTIVE in patch:
        return _directed(patch, patch[_DIRECTIVE])
    result = dict(old) if isinstance(old, Mapping) else {}
    if (retain := patch.get(_RETAIN)) is not None:
        result = {key: value for key, value in result.items() if key in retain}
    orders = {key.removeprefix(_ORDER): value for key, value in patch.items() if key.startswith(_ORDER)}
    for key, value in patch.items():
        if not key.startswith("$"):
            _merge_field(result, key, value, schema.child(key), orders.get(key))
        elif key.startswith(_REMOVE) and key.removeprefix(_REMOVE) in result:
            name = key.removeprefix(_REMOVE)
            result[name] = [item for item in result[name] if item not in value]
    for key in orders.keys() - patch.keys() & result.keys():
        result[key] = _ordered(result[key], result[key], orders[key], schema.child(key).patch_key)
    return result


def _directed(patch: Mapping[str, Any], directive: Any) -> dict[str, Any]:
    if directive == "replace":
        return {key: value for key, value in patch.items() if key != _DIRECTIVE}
    if directive == "delete":
        return {}
    if directive == "merge":
        return {key: value for key, value in patch.items() if key != _DIRECTIVE and value is not None}
    raise statuses.bad_request(f"Unknown patch type found: {directive}")


def _merge_field(result: dict[str, Any], key: str, value: Any, schema: Schema, order: Sequence[Any] | None) -> None:
    if value is None:
        result.pop(key, None)
    elif isinstance(value, list) and "merge" in schema.patch_strategies:
        result[key] = _merge_list(result.get(key) or [], value, schema, order)
    elif isinstance(value, Mapping) and "replace" not in schema.patch_strategies:
        result[key] = strategic_merge(result.get(key), value, schema)
    else:
        result[key] = value


def _merge_list(old: list[Any], patch: list[Any], schema: Schema, order: Sequence[Any] | None) -> list[Any]:
    if {_DIRECTIVE: "replace"} in patch:
        return [item for item in patch if item != {_DIRECTIVE: "replace"}]
    key = schema.patch_key
    if not key:
        merged = old + [item for item in patch if item not in old]
        return _ordered(merged, old, patch if order is None else order, key)
    merged = list(old)
    for item in patch:
        if not isinstance(item, Mapping) or key not in item:
            raise statuses.bad_request(f"map: {printed(item)} does not contain declared merge key: {key}")
        if item.get(_DIRECTIVE) == "delete":
            merged = [known for known in merged if known.get(key) != item[key]]
            continue
        position = next((at for at, known in enumerate(merged) if known.get(key) == item[key]), None)
        if position is None:
            merged.append(strategic_merge({}, item, schema.items))
        else:
            merged[position] = strategic_merge(merged[position], item, schema.items)
    return _ordered(merged, old, patch if order is None else order, key)


def _ordered(items: list[Any], old: list[Any], order: Sequence[Any], key: str) -> list[Any]:
    """The order of a real server: what `order` names comes as it has it, the rest is woven in where it stood.

    An item that is not named comes before the first named one that it stood before in the old list. So new items come
    first in a plain patch, and `$setElementOrder` of `kubectl apply` gives the order of the manifest.
    """
    ranks = {_identity(item, key): rank for rank, item in enumerate(order)}
    places = {_identity(item, key): place for place, item in enumerate(old)}
    named = [item for item in items if _identity(item, key) in ranks]
    named.sort(key=lambda item: ranks[_identity(item, key)])
    others = [item for item in items if _identity(item, key) not in ranks]
    result: list[Any] = []
    for item in named:
        place = places.get(_identity(item, key), -1)
        while others and places[_identity(others[0], key)] < place:
            result.append(others.pop(0))
        result.append(item)
    return result + others


def _identity(item: Any, key: str) -> Any:
    value = item.get(key) if key and isinstance(item, Mapping) else item
    return repr(value) if isinstance(value, list | dict) else value
