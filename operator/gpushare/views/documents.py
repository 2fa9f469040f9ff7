"""The same content for programs: JSON or YAML. Used by every command that has `-o`."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import yaml


def build_text(body: Mapping[str, Any], form: str) -> str:
    """The body as `json` or `yaml`, keys in the order given, without a line break at the end."""
    if form == "json":
        return json.dumps(body, indent=2)
    return yaml.safe_dump(body, sort_keys=False, allow_unicode=True, width=120).rstrip("\n")
