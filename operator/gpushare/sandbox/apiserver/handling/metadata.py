"""What the server says in the metadata of objects: names, uids, versions, and their order. Called by `writing`."""

from __future__ import annotations

import uuid

from gpushare.domain.manifests import Manifest
from gpushare.sandbox.apiserver import field_errors, statuses
from gpushare.sandbox.apiserver.handling.admission import random_suffix
from gpushare.sandbox.apiserver.objects import times
from gpushare.sandbox.apiserver.resources import NAMESPACES, Resource
from gpushare.sandbox.apiserver.storage import Record, Store

_ORDER = (
    "name", "generateName", "namespace", "uid", "resourceVersion", "generation", "creationTimestamp", "deletionTimestamp",
    "deletionGracePeriodSeconds", "labels", "annotations", "ownerReferences", "finalizers", "managedFields",
)  # fmt: skip
_SERVER_FIELDS = (
    "generateName", "generation", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds",
)  # fmt: skip
_NAMESPACE = statuses.Kind("", "namespaces", "Namespace")
_UNSET_WHEN_EMPTY = ("labels", "annotations", "ownerReferences", "finalizers", "generateName", "namespace")


def name_new(store: Store, resource: Resource, namespace: str, obj: Manifest) -> None:
    """Gives a new object its name, namespace and uid, in place. Raises `ApiError` 422 and 500."""
    metadata = obj["metadata"]
    if metadata.get("resourceVersion"):
        raise statuses.ApiError(500, "", "resourceVersion should not be set on objects to be created")
    if resource.namespaced:
        metadata["namespace"] = namespace or metadata.get("namespace") or "default"
    else:
        metadata.pop("namespace", None)
    if not metadata.get("name"):
        metadata["name"] = _generated_name(store, resource, metadata)
    for name in ("deletionTimestamp", "deletionGracePeriodSeconds", "selfLink", "generation"):
        metadata.pop(name, None)
    metadata.update(uid=str(uuid.uuid4()), creationTimestamp=times.now())
    if resource.has_generation:
        metadata["generation"] = 1


def _generated_name(store: Store, resource: Resource, metadata: Manifest) -> str:
    base = metadata.get("generateName")
    if not base:
        cause = field_errors.required("metadata.name", "name or generateName is required")
        raise statuses.invalid(resource.kind, resource.group, "", [cause])
    while True:
        name = f"{base[:58]}{random_suffix()}"
        if store.get(resource.key, metadata.get("namespace", ""), name) is None:
            return name


def check_namespace(store: Store, resource: Resource, metadata: Manifest) -> None:
    """Raises `ApiError` 404 and 403 where the namespace of a new object is not there, or is ending."""
    if not resource.namespaced:
        return
    namespace = store.get(NAMESPACES, "", metadata["namespace"])
    if namespace is None:
        raise statuses.not_found(_NAMESPACE, metadata["namespace"])
    if namespace.object["metadata"].get("deletionTimestamp"):
        name = metadata["namespace"]
        why = f"unable to create new content in namespace {name} because it is being terminated"
        error = statuses.forbidden(resource, metadata["name"], why)
        cause = {"reason": "NamespaceTerminating", "message": f"namespace {name} is being terminated",
                 "field": "metadata.namespace"}  # fmt: skip
        error.details = {**(error.details or {}), "causes": [cause]}
        raise error


def check_version(resource: Resource, old: Record | None, metadata: Manifest) -> None:
    """Raises `ApiError` 409 when a client knows another version than there is."""
    wanted = metadata.get("resourceVersion")
    if wanted and old is not None and wanted != str(old.version):
        raise statuses.conflict(resource, old.name)


def check_uid(resource: Resource, old: Record | None, config: Manifest, name: str) -> None:
    """Raises `ApiError` 409 when a client means an object that is gone, and 422 when there is another one of its name."""
    uid = config["metadata"].get("uid")
    if uid and old is not None and uid != old.object["metadata"]["uid"]:
        cause = field_errors.invalid("metadata.uid", uid, "field is immutable")
        raise statuses.invalid(resource.kind, resource.group, name, [cause])
    if uid and old is None:
        why = f"uid mismatch: the provided object specified uid {uid}, and no existing object was found"
        raise statuses.conflict(resource, name, why)


def keep(old: Manifest, new: Manifest) -> None:
    """Sets in the metadata of a new state what clients cannot change, in place."""
    for name in _SERVER_FIELDS:
        if name in old:
            new[name] = old[name]
        else:
            new.pop(name, None)
    for name in ("uid", "name", "namespace"):
        if name in old:
            new.setdefault(name, old[name])
    if "namespace" not in old:
        new.pop("namespace", None)
    new["resourceVersion"] = old["resourceVersion"]
    new.pop("selfLink", None)


def arranged(obj: Manifest) -> Manifest:
    """An object in the order in which a server sends it: metadata first, status last."""
    rest = {key: value for key, value in obj.items() if key not in ("apiVersion", "kind", "metadata", "status")}
    head = {"apiVersion": obj["apiVersion"], "kind": obj["kind"], "metadata": _ordered(obj["metadata"])}
    return {**head, **rest, **({"status": obj["status"]} if "status" in obj else {})}


def _ordered(metadata: Manifest) -> Manifest:
    """Metadata in the order in which a server sends it, without what is empty."""
    known: Manifest = {name: metadata[name] for name in _ORDER if name in metadata}
    for name in ("labels", "annotations"):
        if known.get(name):
            known[name] = dict(sorted(known[name].items()))
    return {name: value for name, value in known.items() if value or name not in _UNSET_WHEN_EMPTY}
