"""Templates to manifests. Called by the controller for each component of a plan, and by the sandbox for the controller itself.

The CRDs, which need nothing filled in, are read here too.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

import jinja2
import yaml

from gpushare import data
from gpushare.domain.manifests import Manifest


def render(component: str, values: Mapping[str, Any]) -> list[Manifest]:
    """Renders `templates/<component>/` in the order of the file names. A document that is empty is left out.

    Raises:
        jinja2.UndefinedError: a template asks for a value that is not there.
        FileNotFoundError: there is no such component.
    """
    environment = _environment()
    folder = data.path_of("templates") / component
    files = sorted(path.name for path in folder.glob("*.yaml.j2"))
    if not files:
        raise FileNotFoundError(f"no templates in {folder}")
    rendered: list[Manifest] = []
    for file in files:
        text = environment.get_template(f"{component}/{file}").render(values)
        rendered += parse(text)
    return rendered


def read_definitions() -> list[Manifest]:
    """The CRDs of this version, as an administrator would apply them."""
    files = sorted(data.path_of("crds").glob("*.yaml"))
    return [manifest for file in files for manifest in parse(file.read_text(encoding="utf-8"))]


def parse(text: str) -> list[Manifest]:
    """The manifests of a YAML stream. A document that is empty is left out."""
    return [manifest for manifest in yaml.load_all(text, _Loader) if manifest is not None]


# The C parser is ten times faster, and not in every build of PyYAML.
_Loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


@lru_cache(maxsize=1)
def _environment() -> jinja2.Environment:
    environment = jinja2.Environment(  # noqa: S701 - the result is YAML; `to_yaml` is what quotes in it
        loader=jinja2.FileSystemLoader(data.path_of("templates")),
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.filters["to_yaml"] = to_yaml
    return environment


def to_yaml(value: Any) -> str:
    """A value as YAML on one line: whatever is in it, it stays one value. JSON is such YAML."""
    if isinstance(value, jinja2.Undefined):
        return str(value)  # raises, and names what is missing
    return _NOT_YAML.sub(lambda match: f"\\u{ord(match.group()):04x}", json.dumps(value, ensure_ascii=False))


# What JSON lets stand as it is, and YAML takes for the end of a line, or does not take at all.
_NOT_YAML = re.compile("[\x7f-\x9f\u2028\u2029\ufeff\ufffe\uffff]")
