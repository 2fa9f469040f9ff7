"""What server-side apply refuses in a configuration by itself: fields that nobody declared, items that stand twice.

Called by the write path, before the object is looked at. Wrong types are found when the result is decoded.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final, TypeAlias

from gpushare.domain.manifests import Manifest
from gpushare.sandbox.apiserver import statuses
from gpushare.sandbox.apiserver.objects.schemas import Schema
from gpushare.sandbox.apiserver.patching import fieldsets, ownership

_Path: TypeAlias = tuple[str | int, ...]
"""Steps as `fieldsets` has them, and positions in lists whose items have no keys. Spelled out only where there is a problem."""

_EMBEDDED: Final = frozenset({"apiVersion", "kind", "metadata"})


def check(config: Manifest, schema: Schema) -> None:
    """Raises `ApiError` 500, which is what a real server makes of it."""
    problems = [f"{''.join(map(_spoken, path))}: {why}" for path, why in _problems(config, schema, ())]
    if problems:
        text = problems[0] if len(problems) == 1 else "errors:\n" + "\n".join(f"  {each}" for each in problems)
        about = config["metadata"]
        group, _, version = config["apiVersion"].rpartition("/")
        place = f"{about.get('namespace', '')}/{about.get('name', '')}; {group}/{version}, Kind={config['kind']}"
        raise statuses.ApiError(500, "", f"failed to create typed patch object ({place}): {text}")


def _problems(value: Any, schema: Schema, path: _Path) -> Iterator[tuple[_Path, str]]:
    if schema.preserves:
        return
    if isinstance(value, dict) and schema.type == "object":
        yield from _problems_of_fields(value, schema, path)
    elif isinstance(value, list) and schema.type == "array":
        yield from _problems_of_items(value, schema, path)


def _problems_of_fields(value: dict[str, Any], schema: Schema, path: _Path) -> Iterator[tuple[_Path, str]]:
    embedded = _EMBEDDED if schema.raw.get("x-kubernetes-embedded-resource") else frozenset()
    for name in sorted(value.keys() - embedded):
        here = (*path, fieldsets.field_step(name))
        if not schema.knows(name):
            yield here, "field not declared in schema"
            return  # of one map, a real server names one
        if isinstance(value[name], dict | list):
            yield from _problems(value[name], schema.child(name), here)


def _problems_of_items(items: list[Any], schema: Schema, path: _Path) -> Iterator[tuple[_Path, str]]:
    is_keyed = ownership.is_keyed_list(items, schema) and (
        schema.list_type == "set" or all(isinstance(item, dict) for item in items)
    )
    if not is_keyed:
        for number, item in enumerate(items):
            yield from _problems(item, schema.items, (*path, number))
        return
    seen = set()
    for step, item in ownership.keyed_items(items, schema):
        if step in seen:
            yield path, f"duplicate entries for key {_spoken(step)}"
        seen.add(step)
        yield from _problems(item, schema.items, (*path, step))


def _spoken(step: str | int) -> str:
    return f"[{step}]" if isinstance(step, int) else next(fieldsets.paths({step: fieldsets.EMPTY}))
