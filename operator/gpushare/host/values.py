"""Frozen values to JSON and back, by their type hints. Used for what the agent remembers on disk.

The agent could read the text of its configuration again, but not without YAML and pydantic, which would cost it a third
of its start.
"""

from __future__ import annotations

import dataclasses
import functools
import types
import typing
from collections.abc import Mapping
from enum import Enum
from typing import Any, TypeVar

T = TypeVar("T")


def encode(value: object) -> Any:
    """A value of dataclasses, enums, tuples, mappings and plain values as JSON."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: encode(getattr(value, field.name)) for field in dataclasses.fields(value) if field.init}
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, Mapping):
        return {str(key): encode(item) for key, item in value.items()}
    if isinstance(value, tuple):
        return [encode(item) for item in value]
    return value


def decode(kind: type[T], data: Any) -> T:
    """The value that `encode` gave.

    Raises:
        ValueError: the data is not of this type, as after damage or from another version.
    """
    try:
        return typing.cast("T", _decode(kind, data))
    except (TypeError, KeyError) as error:
        raise ValueError(f"no {kind.__name__}: {error}") from error


def _decode(kind: Any, data: Any) -> Any:
    origin = typing.get_origin(kind)
    if origin in {types.UnionType, typing.Union}:
        return _decode_optional(typing.get_args(kind), data)
    if origin is tuple:
        if not isinstance(data, list):
            raise TypeError(f"expected a list, found {data!r}")
        return tuple(_decode(typing.get_args(kind)[0], item) for item in data)
    if dataclasses.is_dataclass(kind):
        if not isinstance(data, dict):
            raise TypeError(f"expected fields, found {data!r}")
        hints = _hints(typing.cast("Any", kind))
        # A field that is not known here is what a newer version has added: going back to an older one loses only that.
        return typing.cast("Any", kind)(**{name: _decode(hints[name], data[name]) for name in hints if name in data})
    if issubclass(kind, Enum):
        return kind(data)
    if not isinstance(data, kind) and not (kind is float and isinstance(data, int)):
        raise TypeError(f"expected {kind.__name__}, found {data!r}")
    return data


@functools.cache
def _hints(kind: Any) -> Mapping[str, Any]:
    return typing.get_type_hints(kind)


def _decode_optional(kinds: tuple[Any, ...], data: Any) -> Any:
    (kind,) = (kind for kind in kinds if kind is not types.NoneType)
    return None if data is None else _decode(kind, data)
