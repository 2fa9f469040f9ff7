"""Metadata of every object: names, labels, annotations, owners, finalizers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from gpushare.domain.manifests import Manifest
from gpushare.sandbox.apiserver import field_errors
from gpushare.sandbox.apiserver.objects import syntax
from gpushare.sandbox.apiserver.objects.jsonvalues import quoted
from gpushare.sandbox.apiserver.resources import Key, Resource
from gpushare.sandbox.apiserver.statuses import Cause

_NAME_RULES: Final[Mapping[Key, syntax.Rule]] = {
    ("", "namespaces"): syntax.label,
    ("", "services"): syntax.service_name,
    ("rbac.authorization.k8s.io", "roles"): syntax.path_segment,
    ("rbac.authorization.k8s.io", "clusterroles"): syntax.path_segment,
    ("rbac.authorization.k8s.io", "rolebindings"): syntax.path_segment,
    ("rbac.authorization.k8s.io", "clusterrolebindings"): syntax.path_segment,
}
_STANDARD_FINALIZERS: Final = frozenset({"kubernetes", "orphan", "foregroundDeletion"})
_ANNOTATIONS_LIMIT: Final = 256 * 1024
_OWNER_ORDER: Final = ("apiVersion", "kind", "name", "uid", "controller", "blockOwnerDeletion")


def check(resource: Resource, obj: Manifest) -> Iterator[Cause]:
    """What is wrong with the metadata of an object, on create and on update."""
    metadata = obj["metadata"]
    name = metadata.get("name", "")
    yield from field_errors.all_invalid("metadata.name", name, _NAME_RULES.get(resource.key, syntax.subdomain)(name))
    yield from check_labels(metadata.get("labels"), "metadata.labels")
    yield from check_annotations(metadata.get("annotations"), "metadata.annotations")
    yield from _check_owners(metadata.get("ownerReferences") or ())
    yield from _check_finalizers(metadata.get("finalizers") or (), builtin=not resource.custom)


def check_update(obj: Manifest, old: Manifest) -> Iterator[Cause]:
    """What may not change in metadata."""
    metadata, before = obj["metadata"], old["metadata"]
    uid = metadata.get("uid", before.get("uid"))
    if uid != before.get("uid"):
        # Twice, since a real server checks it in two places.
        yield from [field_errors.invalid("metadata.uid", uid, "field is immutable")] * 2
    if before.get("deletionTimestamp"):
        added = [each for each in metadata.get("finalizers") or () if each not in (before.get("finalizers") or ())]
        if added:
            names = ", ".join(map(quoted, added))
            why = f"no new finalizers can be added if the object is being deleted, found new finalizers []string{{{names}}}"
            yield field_errors.forbidden("metadata.finalizers", why)


def check_labels(labels: Mapping[str, str] | None, field: str) -> Iterator[Cause]:
    """Labels of an object or of a template."""
    for name, value in sorted((labels or {}).items()):
        yield from field_errors.all_invalid(field, name, syntax.qualified_name(name))
        yield from field_errors.all_invalid(field, value, syntax.label_value(value))


def check_annotations(annotations: Mapping[str, str] | None, field: str) -> Iterator[Cause]:
    """Annotations of an object or of a template."""
    size = 0
    for name, value in sorted((annotations or {}).items()):
        yield from field_errors.all_invalid(field, name, syntax.qualified_name(name.lower()))
        size += len(name.encode()) + len(value.encode())
    if size > _ANNOTATIONS_LIMIT:
        yield field_errors.too_long(field, _ANNOTATIONS_LIMIT)


def _check_owners(owners: Sequence[Mapping[str, Any]]) -> Iterator[Cause]:
    controllers = []
    for number, owner in enumerate(owners):
        field = field_errors.at("metadata.ownerReferences", number)
        if not owner.get("apiVersion"):
            yield field_errors.invalid(f"{field}.apiVersion", "", "version must not be empty")
        for name in ("kind", "name", "uid"):
            if not owner.get(name):
                yield field_errors.invalid(f"{field}.{name}", "", "must not be empty")
        if owner.get("controller"):
            controllers.append(f"{owner.get('kind')}/{owner.get('name')}")
            if len(controllers) > 1:
                shown = [{name: each[name] for name in _OWNER_ORDER if name in each} for each in owners]
                why = (
                    'Only one reference can have Controller set to true. Found "true" in references for '
                    f"{controllers[0]} and {controllers[-1]}"
                )
                yield field_errors.invalid("metadata.ownerReferences", shown, why)


def _check_finalizers(finalizers: Sequence[str], *, builtin: bool) -> Iterator[Cause]:
    for name in finalizers:
        yield from field_errors.all_invalid("metadata.finalizers", name, syntax.qualified_name(name))
    for number, name in enumerate(finalizers):
        # Custom resources may have finalizers without a domain.
        if builtin and "/" not in name and name not in _STANDARD_FINALIZERS:
            why = "name is neither a standard finalizer name nor is it fully qualified"
            yield field_errors.invalid(field_errors.at("metadata.finalizers", number), name, why)
