"""OpenAPI v2 in its protobuf form, which kubectl reads before it sends what a `kind: List` holds.

For every other manifest it leaves the check of fields to the server. Built-in kinds only, and only what that check looks at;
kinds that it does not find here it lets through, and the server checks them like any other.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

ACCEPTED: Final = "application/com.github.proto-openapi.spec.v2@v1.0+protobuf"
SENT: Final = ACCEPTED.replace("@", ".")
"""What clients ask for is no valid media type; what they are told is."""
_KIND: Final = "x-kubernetes-group-version-kind"


def build(definitions: Mapping[str, Any], version: str) -> bytes:
    """The document, with the field numbers of gnostic's OpenAPIv2.proto."""
    info = _field(1, "Kubernetes") + _field(2, version)
    return _field(1, "2.0") + _field(2, info) + _field(9, _named_schemas(definitions))


def _named_schemas(schemas: Mapping[str, Any]) -> bytes:
    return b"".join(_field(1, _field(1, name) + _field(2, _schema(raw))) for name, raw in schemas.items())


def _schema(raw: Mapping[str, Any]) -> bytes:
    if "$ref" in raw:
        return _field(1, f"#/definitions/{raw['$ref']}")
    parts = [_field(19, name) for name in raw.get("required", ())]
    if "additionalProperties" in raw:
        parts.append(_field(21, _field(1, _schema(raw["additionalProperties"]))))
    if "type" in raw:
        parts.append(_field(22, _field(1, raw["type"])))
    if "items" in raw:
        parts.append(_field(23, _field(1, _schema(raw["items"]))))
    if "properties" in raw:
        parts.append(_field(25, _named_schemas(raw["properties"])))
    if _KIND in raw:
        # The value of an extension is YAML.
        parts.append(_field(31, _field(1, _KIND) + _field(2, _field(2, _yaml(raw[_KIND])))))
    return b"".join(parts)


def _yaml(kinds: Iterable[Mapping[str, str]]) -> str:
    return "".join(
        f"- {{group: '{each['group']}', version: {each['version']}, kind: {each['kind']}}}\n" for each in kinds
    )


def _field(number: int, content: str | bytes) -> bytes:
    content = content.encode() if isinstance(content, str) else content
    return _varint(number << 3 | 2) + _varint(len(content)) + content


def _varint(value: int) -> bytes:
    parts = bytearray()
    while value > 0x7F:
        parts.append(value & 0x7F | 0x80)
        value >>= 7
    parts.append(value)
    return bytes(parts)
