"""The ReplicaSets of a Deployment: which one is of the current template, what a new one looks like, their annotations. Pure."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from gpushare.domain import manifests
from gpushare.domain.manifests import Manifest
from gpushare.sandbox.loops import owners
from gpushare.sandbox.workloads import templates

LABEL_HASH = "pod-template-hash"
ANNOTATION_REVISION = "deployment.kubernetes.io/revision"
_ANNOTATION_DESIRED = "deployment.kubernetes.io/desired-replicas"
_ANNOTATION_MOST = "deployment.kubernetes.io/max-replicas"
_NOT_COPIED = (
    "kubectl.kubernetes.io/last-applied-configuration",
    ANNOTATION_REVISION,
    "deployment.kubernetes.io/revision-history",
    _ANNOTATION_DESIRED,
    _ANNOTATION_MOST,
    "deprecated.deployment.rollback.to",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class View:
    """A Deployment and its ReplicaSets, told apart."""

    deployment: Manifest
    new: Manifest | None
    """The one of the current template."""
    old: Sequence[Manifest]
    """Oldest first."""
    has_old_pods: bool = False
    """Whether pods of old ReplicaSets still run, even if they are going."""

    @property
    def all(self) -> list[Manifest]:
        """Every ReplicaSet."""
        return [*self.old, *([self.new] if self.new is not None else [])]

    @property
    def replicas(self) -> int:
        """How many pods the Deployment wants."""
        return int(self.deployment["spec"].get("replicas", 1))

    @property
    def is_recreating(self) -> bool:
        """Whether old pods go before new ones come."""
        return bool((self.deployment["spec"].get("strategy") or {}).get("type") == "Recreate")

    @property
    def surge(self) -> int:
        """How many pods there may be beyond `replicas` during a rollout."""
        return self._fenceposts()[0]

    @property
    def unavailable(self) -> int:
        """How many of `replicas` may be missing during a rollout."""
        return min(self._fenceposts()[1], self.replicas)

    def _fenceposts(self) -> tuple[int, int]:
        if self.is_recreating:
            return 0, 0
        rolling = (self.deployment["spec"].get("strategy") or {}).get("rollingUpdate") or {}
        surge = templates.scaled(rolling.get("maxSurge", "25%"), self.replicas, round_up=True)
        unavailable = templates.scaled(rolling.get("maxUnavailable", "25%"), self.replicas, round_up=False)
        # Both can be rounded to nothing; then nothing would ever move.
        return surge, unavailable or int(not surge)


def build_view(deployment: Manifest, replica_sets: Sequence[Manifest], *, has_old_pods: bool = False) -> View:
    """Finds the ReplicaSet of the current template, the oldest where there are several."""
    ordered = sorted(
        replica_sets, key=lambda found: (found["metadata"]["creationTimestamp"], found["metadata"]["name"])
    )
    template = deployment["spec"]["template"]
    new = next((found for found in ordered if _template_of(found) == template), None)
    old = [found for found in ordered if found is not new]
    return View(deployment=deployment, new=new, old=old, has_old_pods=has_old_pods)


def spec_replicas(replica_set: Manifest) -> int:
    """How many pods a ReplicaSet is told to have."""
    return int(replica_set["spec"].get("replicas", 1))


def available_replicas(replica_set: Manifest) -> int:
    """How many it has for long enough."""
    return int(replica_set.get("status", {}).get("availableReplicas", 0))


def revision_of(replica_set: Manifest) -> int:
    """Its number in the history; 0 before it has one."""
    return int(_annotations(replica_set).get(ANNOTATION_REVISION, 0))


def desired_of(replica_set: Manifest) -> int | None:
    """How many pods the Deployment wanted when it last scaled this one."""
    text = _annotations(replica_set).get(_ANNOTATION_DESIRED)
    return int(text) if text is not None else None


def most_of(replica_set: Manifest) -> int | None:
    """How many pods the Deployment might have had when it last scaled this one."""
    text = _annotations(replica_set).get(_ANNOTATION_MOST)
    return int(text) if text is not None else None


def build_new(view: View, replicas: int) -> Manifest:
    """The ReplicaSet of a template that is used for the first time."""
    metadata, spec = view.deployment["metadata"], view.deployment["spec"]
    template = copy.deepcopy(spec["template"])
    template_hash = templates.build_hash(template, view.deployment.get("status", {}).get("collisionCount") or 0)
    template.setdefault("metadata", {}).setdefault("labels", {})[LABEL_HASH] = template_hash
    selector = copy.deepcopy(spec["selector"])
    selector.setdefault("matchLabels", {})[LABEL_HASH] = template_hash
    return {
        "apiVersion": manifests.REPLICA_SET.api_version,
        "kind": manifests.REPLICA_SET.kind,
        "metadata": {
            "name": f"{metadata['name']}-{template_hash}",
            "namespace": metadata["namespace"],
            "labels": dict(template["metadata"]["labels"]),
            "annotations": _wanted_annotations(view, {}, _next_revision(view)),
            "ownerReferences": [owners.build_reference(view.deployment, manifests.DEPLOYMENT)],
        },
        "spec": {
            "replicas": replicas,
            "selector": selector,
            "template": template,
            **({"minReadySeconds": spec["minReadySeconds"]} if spec.get("minReadySeconds") else {}),
        },
    }


def build_renewed(view: View) -> Manifest | None:
    """The new ReplicaSet with the annotations and the number that it should have; None when it has them.

    A template that was used before becomes the newest again: what `kubectl rollout undo` leads to.
    """
    assert view.new is not None
    number = max(revision_of(view.new), _next_revision(view))
    annotations = _wanted_annotations(view, _annotations(view.new), number)
    spec = {**view.new["spec"]}
    if view.deployment["spec"].get("minReadySeconds", 0) != spec.get("minReadySeconds", 0):
        spec["minReadySeconds"] = view.deployment["spec"].get("minReadySeconds", 0)
    renewed = {**view.new, "metadata": {**view.new["metadata"], "annotations": annotations}, "spec": spec}
    return renewed if renewed != view.new else None


def build_scaled(view: View, replica_set: Manifest, replicas: int) -> Manifest:
    """A copy that is told to have `replicas` pods, and remembers what the Deployment wanted."""
    annotations = {**_annotations(replica_set), **_size_annotations(view)}
    return {
        **replica_set,
        "metadata": {**replica_set["metadata"], "annotations": annotations},
        "spec": {**replica_set["spec"], "replicas": replicas},
    }


def _template_of(replica_set: Manifest) -> Manifest:
    template = copy.deepcopy(replica_set["spec"]["template"])
    labels = template.get("metadata", {}).get("labels", {})
    labels.pop(LABEL_HASH, None)
    return dict(template)


def _next_revision(view: View) -> int:
    return max(map(revision_of, view.old), default=0) + 1


def _annotations(manifest: Manifest) -> dict[str, Any]:
    return dict(manifest["metadata"].get("annotations") or {})


def _size_annotations(view: View) -> dict[str, str]:
    return {_ANNOTATION_DESIRED: str(view.replicas), _ANNOTATION_MOST: str(view.replicas + view.surge)}


def _wanted_annotations(view: View, present: dict[str, str], revision: int) -> dict[str, str]:
    copied = {key: value for key, value in _annotations(view.deployment).items() if key not in _NOT_COPIED}
    sizes = present if _ANNOTATION_DESIRED in present else _size_annotations(view)
    return {**sizes, **present, **copied, ANNOTATION_REVISION: str(revision)}
