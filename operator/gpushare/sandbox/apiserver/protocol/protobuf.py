"""Bodies in protobuf, which kubectl sends for `create ...`, `auth` and `drain`, and does not send as JSON when refused.

Fields that are not in `protobuf_messages` are refused when they hold something, rather than dropped: nobody loses what
they wrote without being told.
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from typing import Any, Final, TypeAlias

from gpushare.domain.manifests import Manifest
from gpushare.sandbox.apiserver import statuses
from gpushare.sandbox.apiserver.objects import times
from gpushare.sandbox.apiserver.protocol.protobuf_messages import INLINED, MESSAGES

_MAGIC: Final = b"k8s\x00"
_Wire: TypeAlias = int | bytes


def decode(body: bytes) -> Manifest:
    """The object in a body, with its `apiVersion` and `kind`.

    Raises:
        ApiError: 400, no protobuf of Kubernetes' kind; 415, a kind or a field that this server does not read.
    """
    if not body.startswith(_MAGIC):
        raise statuses.bad_request("the body of the request is not Kubernetes protobuf")
    try:
        return _object(body[len(_MAGIC) :])
    except _UnknownError as error:
        message = (
            f"this server does not read {error} from protobuf; write the object as YAML (--dry-run=client -o yaml) and "
            "apply that"
        )
        raise statuses.ApiError(415, "UnsupportedMediaType", message, details={}) from None
    except (KeyError, IndexError, ValueError) as error:
        raise statuses.bad_request(f"error decoding protobuf: {error}") from None


class _UnknownError(Exception):
    """Something that the tables do not have."""


def _object(content: bytes) -> Manifest:
    envelope = dict(_fields(content))
    names = dict(_fields(_bytes(envelope[1])))
    api_version, kind = (_bytes(names[number]).decode() for number in (1, 2))
    if kind not in MESSAGES:
        raise _UnknownError(f"kind {kind}")
    return {"apiVersion": api_version, "kind": kind, **_message(_bytes(envelope.get(2, b"")), kind)}


@dataclass(frozen=True, slots=True)
class _Field:
    """One field of a message."""

    name: str
    type: str
    form: str
    """Empty, or `[` for a list, `{` for a map."""
    is_pointer: bool


@cache
def _layout(message: str) -> Mapping[int, _Field]:
    layout = {}
    for entry in MESSAGES[message].split():
        name, _, rest = entry.partition("=")
        number, _, kind = rest.partition(":")
        bare = kind.removesuffix("?")
        form = bare[:1] if bare[:1] in "[{" else ""
        layout[int(number)] = _Field(name, bare.strip("[]{}") or "text", form, kind.endswith("?"))
    return layout


def _message(content: bytes, name: str) -> Manifest:
    layout = _layout(name)
    result: Manifest = {}
    for number, wire in _fields(content):
        field = layout.get(number)
        if field is None:
            if not _is_zero(wire):
                raise _UnknownError(f"field {number} of {name}")
            continue
        if field.form == "[":
            result.setdefault(field.name, []).append(_value(wire, field.type))
        elif field.form == "{":
            entry = dict(_fields(_bytes(wire)))
            result.setdefault(field.name, {})[_bytes(entry.get(1, b"")).decode()] = _value(
                entry.get(2, b""), field.type
            )
        else:
            value = _value(wire, field.type)
            if (name, field.name) in INLINED:
                result |= value
            elif field.is_pointer or value not in ("", 0, False, {}, None):
                result[field.name] = value
    return result


def _value(wire: _Wire, kind: str) -> Any:
    read = _SCALARS.get(kind)
    return read(wire) if read else _message(_bytes(wire), kind)


def _integer(wire: _Wire) -> int:
    value = int(wire or 0) if isinstance(wire, int) else 0
    return value - (1 << 64) if value >> 63 else value


def _time(wire: _Wire) -> str | None:
    seconds = _integer(dict(_fields(_bytes(wire))).get(1, 0))
    # The zero time of Go, far before 1970, means that none was set.
    return times.written(datetime.fromtimestamp(seconds, UTC)) if seconds > 0 else None


def _quantity(wire: _Wire) -> str:
    return _bytes(dict(_fields(_bytes(wire))).get(1, b"")).decode()


def _int_or_string(wire: _Wire) -> int | str:
    parts = dict(_fields(_bytes(wire)))
    return _bytes(parts.get(3, b"")).decode() if parts.get(1) else _integer(parts.get(2, 0))


_SCALARS: Final[Mapping[str, Callable[[_Wire], Any]]] = {
    "text": lambda wire: _bytes(wire).decode(),
    "bytes": lambda wire: base64.b64encode(_bytes(wire)).decode(),
    "int": _integer,
    "bool": bool,
    "time": _time,
    "quantity": _quantity,
    "intstr": _int_or_string,
}


def _bytes(wire: _Wire) -> bytes:
    if isinstance(wire, int):
        raise ValueError("a number where bytes are expected")  # noqa: TRY004 - about the body, not about our types
    return wire


def _is_zero(wire: _Wire) -> bool:
    """Whether an unknown field holds nothing: Go writes fields that are not set, too."""
    if not wire:
        return True
    if isinstance(wire, int):
        return False
    try:
        return all(_is_zero(part) for _, part in _fields(wire))
    except (ValueError, IndexError):
        return False


def _fields(content: bytes) -> Iterator[tuple[int, _Wire]]:
    """Number and content of each field of a message, in the order in which they come."""
    at = 0
    while at < len(content):
        tag, at = _varint(content, at)
        kind = tag & 7
        if kind == 0:
            value, at = _varint(content, at)
            yield tag >> 3, value
            continue
        if kind not in _LENGTHS:
            raise ValueError(f"wire type {kind}")
        length, at = (_LENGTHS[kind], at) if _LENGTHS[kind] else _varint(content, at)
        if at + length > len(content):
            raise ValueError("a field is longer than the body")
        yield tag >> 3, content[at : at + length]
        at += length


_LENGTHS: Final = {1: 8, 2: 0, 5: 4}
"""Lengths in bytes by wire type; 0 means that the length stands before the content."""


def _varint(content: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = content[at]
        at += 1
        value |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            return value, at
