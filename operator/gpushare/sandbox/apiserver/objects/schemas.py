"""Schemas of objects, resolved once: the built-in kinds from shipped definitions, custom ones from their own words.

Everything that must know what a field means asks a `Schema`: patches, server-side apply, decoding, validation. The
OpenAPI pages take their components from here.
"""

from __future__ import annotations

import json
import lzma
from collections.abc import Iterable, Mapping
from functools import cache
from importlib import resources
from typing import Any, Final, NamedTuple

OBJECT_META: Final = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"
DELETE_OPTIONS: Final = "io.k8s.apimachinery.pkg.apis.meta.v1.DeleteOptions"
QUANTITY: Final = "io.k8s.apimachinery.pkg.api.resource.Quantity"
TIME: Final = "io.k8s.apimachinery.pkg.apis.meta.v1.Time"
MICRO_TIME: Final = "io.k8s.apimachinery.pkg.apis.meta.v1.MicroTime"
COMPONENTS: Final = "#/components/schemas/"
_FREE: Final = frozenset(
    {
        "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.JSON",
        "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.JSONSchemaPropsOrArray",
        "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.JSONSchemaPropsOrBool",
        "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.JSONSchemaPropsOrStringArray",
        "io.k8s.apimachinery.pkg.apis.meta.v1.FieldsV1",
        "io.k8s.apimachinery.pkg.runtime.RawExtension",
    }
)
"""Definitions that hold any JSON."""


class GroupVersionKind(NamedTuple):
    """The type of an object. Core kinds have an empty group."""

    group: str
    version: str
    kind: str


class Schema:
    """What is known about one value: its type, its children, how lists merge. Children are resolved once and kept."""

    __slots__ = (
        "_children", "_items", "additional", "definition", "format", "is_atomic_map", "is_plain_text", "list_keys",
        "list_type", "patch_key", "patch_strategies", "preserves", "properties", "raw", "required", "type",
    )  # fmt: skip

    def __init__(self, raw: Mapping[str, Any]) -> None:
        self.definition: str = raw.get("$ref", "")
        """Name of the shared definition that this is; empty for what stands in place."""
        if self.definition:
            raw = {**definitions().get(self.definition, {}), **raw}
        self.raw = raw
        self.type: str = raw.get("type", "")
        self.format: str = raw.get("format", "")
        self.properties: Mapping[str, Any] = raw.get("properties", {})
        self.additional: Any = raw.get("additionalProperties")
        self.required: tuple[str, ...] = tuple(raw.get("required", ()))
        self.list_type: str = raw.get("x-kubernetes-list-type", "atomic")
        self.list_keys: tuple[str, ...] = tuple(raw.get("x-kubernetes-list-map-keys", ()))
        self.is_atomic_map: bool = raw.get("x-kubernetes-map-type") == "atomic"
        self.patch_strategies: tuple[str, ...] = tuple(raw.get("x-kubernetes-patch-strategy", "").split(","))
        self.patch_key: str = raw.get("x-kubernetes-patch-merge-key", "")
        self.preserves: bool = (
            bool(raw.get("x-kubernetes-preserve-unknown-fields")) or self.definition in _FREE or not raw
        )
        """Whether fields that are not declared are kept, whatever they are."""
        self.is_plain_text: bool = (
            self.type == "string" and self.format != "byte" and self.definition not in (TIME, MICRO_TIME)
        )
        """Whether any text is a good value, and stays as it is."""
        self._children: dict[str, Schema] = {}
        self._items: Schema | None = None

    def declares(self, key: str) -> bool:
        """Whether `key` is a field with a declaration of its own, not only a key of a map."""
        return key in self.properties

    def knows(self, key: str) -> bool:
        """Whether an object may have `key` at all."""
        return key in self.properties or bool(self.additional) or self.preserves

    def child(self, key: str) -> Schema:
        """The schema of the value under `key`; `ANYTHING` where nothing is declared."""
        found = self._children.get(key)
        if found is None:
            raw = self.properties.get(key)
            if raw is not None:
                found = self._children[key] = Schema(raw)
            else:
                found = self._additional()
        return found

    @property
    def items(self) -> Schema:
        """The schema of each item of a list."""
        if self._items is None:
            raw = self.raw.get("items")
            self._items = Schema(raw) if raw else ANYTHING
        return self._items

    @property
    def is_quantity(self) -> bool:
        """Whether the value is a Kubernetes quantity."""
        return self.definition == QUANTITY

    @property
    def is_int_or_string(self) -> bool:
        """Whether both a number and a text are allowed."""
        return bool(self.raw.get("x-kubernetes-int-or-string"))

    def _additional(self) -> Schema:
        # Kept under a key that no JSON object of a real kind has, so that every key of a map shares one schema.
        found = self._children.get("*")
        if found is None:
            found = Schema(self.additional) if isinstance(self.additional, Mapping) else ANYTHING
            self._children["*"] = found
        return found


@cache
def definitions() -> dict[str, Any]:
    """Everything that the built-in kinds consist of, by name; nobody changes it."""
    return _read("definitions.json.xz")


ANYTHING: Final = Schema({})
"""The schema of a value of which nothing is known: kept as it is, maps merge by key, lists are one value."""


@cache
def definition(gvk: tuple[str, str, str]) -> Schema:
    """The schema of a built-in kind by group, version and kind; `ANYTHING` for a kind that is not built in."""
    name = _kinds().get(gvk)
    return Schema({"$ref": name}) if name else ANYTHING


def custom(schema: Mapping[str, Any]) -> Schema:
    """The schema of a custom kind, from the `openAPIV3Schema` of its definition; metadata is that of every object."""
    text = {"type": "string"}
    shared = {"apiVersion": text, "kind": text, "metadata": {"$ref": OBJECT_META}}
    return Schema({**schema, "type": "object", "properties": {**schema.get("properties", {}), **shared}})


def definition_name(gvk: tuple[str, str, str]) -> str | None:
    """The name of a built-in kind's definition, as OpenAPI refers to it."""
    return _kinds().get(gvk)


@cache
def named(name: str) -> Schema:
    """The schema of a shared definition, `OBJECT_META` for instance."""
    return Schema({"$ref": name})


def components(names: Iterable[str]) -> dict[str, Any]:
    """OpenAPI components with their descriptions: the named definitions and everything that they refer to."""
    structure, descriptions = definitions(), _descriptions()
    todo, found = list(names), {}
    while todo:
        name = todo.pop()
        if name in found or name not in structure:
            continue
        todo += _references(structure[name])
        found[name] = _described(structure[name], descriptions.get(name, {}))
    return found


def component_reference(name: str) -> dict[str, str]:
    """A reference to a component of an OpenAPI page."""
    return {"$ref": COMPONENTS + name}


@cache
def _descriptions() -> dict[str, dict[str, str]]:
    return _read("descriptions.json.xz")


@cache
def _kinds() -> dict[tuple[str, str, str], str]:
    found = {}
    for name, raw in definitions().items():
        kinds = raw.get("x-kubernetes-group-version-kind", [])
        # Those of all groups at once (DeleteOptions) name no kind of their own.
        if len(kinds) == 1:
            found[kinds[0]["group"], kinds[0]["version"], kinds[0]["kind"]] = name
    return found


def _read(name: str) -> dict[str, Any]:
    packed = resources.files(__package__).joinpath("data", name).read_bytes()
    content: dict[str, Any] = json.loads(lzma.decompress(packed))
    return content


def _references(node: Any) -> list[str]:
    if isinstance(node, list):
        return [name for item in node for name in _references(item)]
    if not isinstance(node, dict):
        return []
    found = [name for value in node.values() for name in _references(value)]
    if isinstance(node.get("$ref"), str):
        found.append(node["$ref"])
    return found


def _described(raw: Mapping[str, Any], texts: Mapping[str, str]) -> dict[str, Any]:
    page: dict[str, Any] = _with_component_references(raw)
    if "" in texts:
        page["description"] = texts[""]
    for field, schema in page.get("properties", {}).items():
        if field in texts:
            if "$ref" in schema:
                # Nothing beside a reference counts, so it goes one level down, as on a real server.
                schema["allOf"] = [{"$ref": schema.pop("$ref")}]
            schema["description"] = texts[field]
    return page


def _with_component_references(node: Any) -> Any:
    if isinstance(node, list):
        return [_with_component_references(item) for item in node]
    if not isinstance(node, Mapping):
        return node
    return {
        key: COMPONENTS + value if key == "$ref" and isinstance(value, str) else _with_component_references(value)
        for key, value in node.items()
    }
