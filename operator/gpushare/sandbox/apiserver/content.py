"""What a write does to the content of an object, whatever door it came through: decode, default, validate."""

from __future__ import annotations

from gpushare.domain.manifests import Manifest
from gpushare.sandbox.apiserver.resources import Resource
from gpushare.sandbox.apiserver.statuses import Cause


def complete(resource: Resource, obj: Manifest, old: Manifest | None) -> Manifest:
    return obj


def check(resource: Resource, obj: Manifest, old: Manifest | None) -> list[Cause]:
    return []
