"""What a write does to the content of an object, whatever door it came through: defaults, and what is wrong with it."""

from __future__ import annotations

from gpushare.domain.manifests import Manifest
from gpushare.sandbox.apiserver import crds, defaults, validation
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
    if old is None:
        causes = validation.validate_create(resource, obj)
    else:
        causes = validation.validate_update(resource, obj, old, subresource)
    return causes + crds.validate(obj, resource.schema, subresource) if resource.custom else causes
