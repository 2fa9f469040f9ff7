# ruff: noqa: INP001 - a script, run by its path
"""Extracts the Kubernetes definitions that the embedded API server serves from the development dependency.

Writes `definitions.json.xz` (structure only, read at the first use) and `descriptions.json.xz` (texts, read when somebody
asks for OpenAPI) into the server's `data` folder. Called by `make generate`; the output is the same byte for byte as
long as the dependency is.
"""

from __future__ import annotations

import json
import lzma
from importlib import resources
from pathlib import Path
from typing import Any

VERSION = "1.36.0"
TARGET = Path(__file__).parents[1] / "operator/gpushare/sandbox/apiserver/objects/data"
VERSIONS = {"autoscaling": ("v1", "v2")}
"""Versions of groups that are not served as `v1` alone."""
UNSERVED = {"admission.k8s.io", "internal.apiserver.k8s.io"}
EXTRA_ROOTS = ("io.k8s.apimachinery.pkg.apis.meta.v1.DeleteOptions", "io.k8s.apimachinery.pkg.apis.meta.v1.Status")
INT_OR_STRING = "io.k8s.apimachinery.pkg.util.intstr.IntOrString"


def main() -> None:
    """Reads the dependency, writes the two files."""
    source = resources.files("kubernetes_validate") / "kubernetes-json-schema" / f"v{VERSION}-local"
    definitions = json.loads((source / "_definitions.json").read_text())["$defs"]
    descriptions: dict[str, dict[str, str]] = {}
    structure: dict[str, Any] = {}
    for name in sorted(closure(definitions)):
        texts: dict[str, str] = {}
        structure[name] = build_definition(definitions[name], texts)
        if texts:
            descriptions[name] = texts
    # Declared by what they mean, which the source says in a way that only validators of JSON schema understand.
    structure[INT_OR_STRING] = {"format": "int-or-string", "x-kubernetes-int-or-string": True}
    write("definitions.json.xz", structure)
    write("descriptions.json.xz", descriptions)


def closure(definitions: dict[str, Any]) -> set[str]:
    """The names of all served kinds, and of everything that they refer to."""
    todo = [name for name, definition in definitions.items() if is_served(definition)] + list(EXTRA_ROOTS)
    found: set[str] = set()
    while todo:
        name = todo.pop()
        if name not in found:
            found.add(name)
            todo += references(definitions[name])
    return found


def is_served(definition: dict[str, Any]) -> bool:
    """Whether the definition is one kind of a version that is served; those of all groups (DeleteOptions) are not."""
    kinds = definition.get("x-kubernetes-group-version-kind", [])
    if len(kinds) != 1 or kinds[0]["group"] in UNSERVED:
        return False
    return kinds[0]["version"] in VERSIONS.get(kinds[0]["group"], ("v1",))


def references(node: Any) -> list[str]:
    """The names of the definitions that a schema refers to."""
    if isinstance(node, list):
        return [name for item in node for name in references(item)]
    if not isinstance(node, dict):
        return []
    found = [name for value in node.values() for name in references(value)]
    if isinstance(node.get("$ref"), str):
        found.append(node["$ref"].rpartition("/")[2])
    return found


def build_definition(definition: dict[str, Any], texts: dict[str, str]) -> dict[str, Any]:
    """One definition as OpenAPI has it: without null types and without enums on kinds; its texts go to `texts`."""
    clean = build_schema(definition)
    clean.pop("description", None)
    if "description" in definition:
        texts[""] = definition["description"]
    for name, schema in clean.get("properties", {}).items():
        if name in ("apiVersion", "kind"):
            schema.pop("enum", None)
        if text := schema.pop("description", None):
            texts[name] = text
    return clean


def build_schema(node: dict[str, Any]) -> dict[str, Any]:
    """One schema, with references by bare name and one type."""
    result: dict[str, Any] = {}
    for key, value in node.items():
        if key == "$ref":
            result[key] = value.rpartition("/")[2]
        elif key == "type":
            result[key] = next(name for name in value if name != "null") if isinstance(value, list) else value
        elif key == "properties":
            result[key] = {name: build_schema(value[name]) for name in sorted(value)}
        elif key in ("items", "additionalProperties") and isinstance(value, dict):
            result[key] = build_schema(value)
        elif key == "oneOf":
            result[key] = [build_schema(choice) for choice in value]
        else:
            result[key] = value
    return result


def write(name: str, content: dict[str, Any]) -> None:
    """Packs one file; sorted, so that the same content gives the same bytes."""
    TARGET.mkdir(exist_ok=True)
    text = json.dumps(content, separators=(",", ":"), sort_keys=True).encode()
    (TARGET / name).write_bytes(lzma.compress(text, preset=9 | lzma.PRESET_EXTREME))


if __name__ == "__main__":
    main()
