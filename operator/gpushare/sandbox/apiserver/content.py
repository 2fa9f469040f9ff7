"""What a write does to the content of an object, whatever door it came through: defaults, and what is wrong with it."""

from __future__ import annotations

from gpushare.domain.manifests import Manifest
from gpushare.sandbox.apiserver import crds, defaults
from gpushare.sandbox.apiserver.resources import Resource
from gpushare.sandbox.apiserver.statuses import Cause


def complete(resource: Resource, obj: Manifest) -> None:
    """Fills in defaults, in place."""
    if resource.custom:
        crds.apply_defaults(obj, resource.schema)
    else:
        defaults.apply(obj, resource.schema)


def check(resource: Resource, obj: Manifest, old: Manifest | None, subresource: str) -> list[Cause]:
    """All that is wrong with a new object, or with a new state of one."""
    del old
    if resource.custom:
        return crds.validate(obj, resource.schema, subresource)
    return []
