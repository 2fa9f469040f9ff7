"""Manifests and labels laid over a cluster, as if they had been applied. For previews."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TypeAlias

from gpushare.api.documents import MAX_MANIFEST_BYTES, read_document, split_documents
from gpushare.domain import manifests
from gpushare.domain.manifests import Manifest, ObjectKey
from gpushare.errors import ConfigurationError, Problem, UsageError
from gpushare.plan import wording

LabelChanges: TypeAlias = Mapping[str, Mapping[str, str | None]]
"""By node: the new value of each label, None where it goes."""

KINDS = (manifests.CLUSTER_POLICY, manifests.CONFIG_MAP)
"""What can be laid over; everything else decides nothing here."""


def read_manifests(text: str) -> Iterator[Manifest]:
    """The objects of a file, those of a `List` one by one.

    Raises:
        ConfigurationError: it is no YAML, or holds something that is no object with a kind and a name.
    """
    for chunk in split_documents(text):
        document = read_document(chunk, most=MAX_MANIFEST_BYTES)
        data = document.data
        if data is None:
            continue
        items = data.get("items") if isinstance(data, Mapping) and str(data.get("kind")).endswith("List") else None
        for manifest in items if isinstance(items, list) else [data]:
            if not _is_manifest(manifest):
                message = "must have apiVersion, kind and metadata.name; put a configuration into a ConfigMap"
                raise ConfigurationError([Problem(path="", message=message, line=document.line_of(()))])
            yield dict(manifest)


def _is_manifest(data: object) -> bool:
    if not isinstance(data, Mapping) or not data.get("apiVersion") or not data.get("kind"):
        return False
    metadata = data.get("metadata")
    return isinstance(metadata, Mapping) and bool(metadata.get("name"))


def find_unread(given: Iterable[Manifest]) -> Iterator[str]:
    """A sentence where a file holds more than can be laid over."""
    # With its version: one of our kinds in another version is none that a cluster would have.
    others = {
        f"{each['apiVersion']} {each['kind']} {each['metadata']['name']}" for each in given if not _key_of(each, "")
    }
    if others:
        yield f"neither ClusterPolicies nor ConfigMaps, and so not looked at: {wording.listed(others)}"


def lay_over(
    found: Iterable[Manifest], given: Iterable[Manifest], labels: LabelChanges, *, namespace: str, now: str
) -> tuple[Manifest, ...]:
    """The objects as they would be.

    Args:
        found: of the cluster.
        given: of these what is a ClusterPolicy or a ConfigMap takes the place of the object of its name.
        labels: to set on nodes.
        namespace: of a ConfigMap that names none.
        now: RFC 3339 time of creation of a policy that is new, since the oldest one counts.

    Raises:
        UsageError: a label for a node that is not there.
    """
    objects = {manifests.key_of(manifest): manifest for manifest in found}
    for manifest in given:
        key = _key_of(manifest, namespace)
        if key is not None:
            objects[key] = _merged(objects.get(key), manifest, key, now)
    for node, changes in labels.items():
        key = ObjectKey(manifests.NODE, node)
        if key not in objects:
            raise UsageError(f"--label: there is no node {node}")
        objects[key] = _labelled(objects[key], changes)
    return tuple(objects.values())


def _key_of(manifest: Manifest, namespace: str) -> ObjectKey | None:
    try:
        key = manifests.key_of(manifest)
    except KeyError:
        return None
    if key.kind not in KINDS:
        return None
    return ObjectKey(key.kind, key.name, (key.namespace or namespace) if key.kind.namespaced else "")


def _merged(before: Manifest | None, given: Manifest, key: ObjectKey, now: str) -> Manifest:
    """What the file says, and of what only the cluster knows the rest: uid, age, status."""
    known = (before or {}).get("metadata") or {"uid": f"preview-{key.name}", "creationTimestamp": now}
    metadata = {**known, **given["metadata"]}
    if key.namespace:
        metadata["namespace"] = key.namespace
    return {**given, "metadata": metadata, "status": (before or {}).get("status")}


def _labelled(node: Manifest, changes: Mapping[str, str | None]) -> Manifest:
    labels = {**(node["metadata"].get("labels") or {}), **changes}
    kept = {key: value for key, value in labels.items() if value is not None}
    return {**node, "metadata": {**node["metadata"], "labels": kept}}
