"""Delete: preconditions, grace periods of pods, finalizers, namespaces that end slowly."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from gpushare.domain.manifests import Manifest
from gpushare.sandbox.apiserver import field_errors, statuses
from gpushare.sandbox.apiserver.objects import times
from gpushare.sandbox.apiserver.requests import Request
from gpushare.sandbox.apiserver.resources import CUSTOM_RESOURCE_DEFINITIONS, NAMESPACES, PODS, Resource
from gpushare.sandbox.apiserver.storage import Record, Store

ORPHAN, FOREGROUND = "orphan", "foregroundDeletion"
CRD_CLEANUP = "customresourcecleanup.apiextensions.k8s.io"
_POLICIES = ("Foreground", "Background", "Orphan")
_POLICY_FINALIZERS = {"Orphan": ORPHAN, "Foreground": FOREGROUND}
_ENDED = ("Succeeded", "Failed")
_DEFAULT_GRACE_SECONDS = 30


@dataclass(frozen=True, slots=True, kw_only=True)
class DeleteOptions:
    """How something is deleted."""

    grace_seconds: int | None = None
    policy: str = ""
    """`Orphan`, `Foreground` or `Background`; empty for the kind's own, which is background."""
    uid: str = ""
    version: str = ""
    dry_run: bool = False

    @classmethod
    def parse(cls, body: Mapping[str, Any], request: Request) -> DeleteOptions:
        """Reads DeleteOptions, whose types are right, from the body or from the query. Raises `ApiError` 400 and 422."""
        preconditions = body.get("preconditions") or {}
        policy = body.get("propagationPolicy") or request.query.get("propagationPolicy", "")
        if policy and policy not in _POLICIES:
            cause = field_errors.unsupported("propagationPolicy", policy, (*_POLICIES, "nil"))
            raise statuses.invalid("DeleteOptions", "meta.k8s.io", "", [cause])
        if not policy and body.get("orphanDependents"):
            policy = "Orphan"
        return cls(
            grace_seconds=body.get("gracePeriodSeconds", request.number("gracePeriodSeconds")),
            policy=policy,
            uid=preconditions.get("uid") or "",
            version=preconditions.get("resourceVersion") or "",
            dry_run=bool(body.get("dryRun") or request.dry_run),
        )


@dataclass(frozen=True, slots=True)
class Deleter:
    """Takes objects away, or marks them where something has to happen before."""

    store: Store

    def delete(self, resource: Resource, namespace: str, name: str, options: DeleteOptions) -> tuple[Record, bool]:
        """Deletes one object; whether it is gone already. Raises `ApiError` 404 and 409."""
        record = self.store.get(resource.key, namespace, name)
        if record is None:
            raise statuses.not_found(resource, name)
        _check_preconditions(resource, record, options)
        finalizers = _finalizers(resource, record.object, options)
        grace = _grace_seconds(resource, record.object, options)
        if options.dry_run:
            return record, not finalizers and not grace
        if not finalizers and not grace and resource.key != NAMESPACES:
            return self.store.remove(resource.key, record.object), True
        return self._mark(resource, record, finalizers, grace), False

    def _mark(self, resource: Resource, record: Record, finalizers: list[str], grace: int) -> Record:
        metadata = dict(record.object["metadata"])
        before = metadata.get("deletionGracePeriodSeconds", grace)
        if metadata.get("deletionTimestamp") and grace >= before and finalizers == metadata.get("finalizers", []):
            if resource.key == NAMESPACES:
                raise statuses.conflict(
                    resource, record.name,
                    "The system is ensuring all content is removed from this namespace.  Upon completion, this namespace "
                    "will automatically be purged by the system.",
                )  # fmt: skip
            return record
        ends = datetime.now(UTC) + timedelta(seconds=grace)
        if not metadata.get("deletionTimestamp") and metadata.get("generation"):
            metadata["generation"] += 1
        metadata |= {"deletionTimestamp": times.written(ends)}
        if resource.key != NAMESPACES:
            metadata["deletionGracePeriodSeconds"] = min(grace, before)
        if finalizers:
            metadata["finalizers"] = finalizers
        obj = {**record.object, "metadata": metadata}
        if resource.key == NAMESPACES:
            obj["status"] = {**obj.get("status", {}), "phase": "Terminating"}
        return self.store.put(resource.key, obj)


def _check_preconditions(resource: Resource, record: Record, options: DeleteOptions) -> None:
    metadata = record.object["metadata"]
    if options.uid and options.uid != metadata["uid"]:
        why = f"the UID in the precondition ({options.uid}) does not match the UID in record ({metadata['uid']}). The object "
        raise _precondition_failed(resource, record, why + "might have been deleted and then recreated")
    if options.version and options.version != metadata["resourceVersion"]:
        why = (
            f"the ResourceVersion in the precondition ({options.version}) does not match the ResourceVersion in record "
        )
        raise _precondition_failed(
            resource, record, f"{why}({metadata['resourceVersion']}). The object might have been modified"
        )


def _precondition_failed(resource: Resource, record: Record, why: str) -> statuses.ApiError:
    subject = f"{resource.kind}.{resource.group}" if resource.group else resource.kind
    details = {"name": record.name, **({"group": resource.group} if resource.group else {}), "kind": resource.kind}
    message = f'Operation cannot be fulfilled on {subject} "{record.name}": {why}'
    return statuses.ApiError(409, "Conflict", message, details=details)


def _finalizers(resource: Resource, obj: Manifest, options: DeleteOptions) -> list[str]:
    """What must be done before the object goes: what it says itself, and what this request asks for."""
    found = list(obj["metadata"].get("finalizers") or [])
    if options.policy:
        found = [name for name in found if name not in (ORPHAN, FOREGROUND)]
    wanted = _POLICY_FINALIZERS.get(options.policy)
    if wanted:
        found.append(wanted)
    if (
        resource.key == CUSTOM_RESOURCE_DEFINITIONS
        and CRD_CLEANUP not in found
        and not obj["metadata"].get("deletionTimestamp")
    ):
        found.append(CRD_CLEANUP)
    return found


def _grace_seconds(resource: Resource, obj: Manifest, options: DeleteOptions) -> int:
    """How long a pod may take to end; nothing else has a grace period, nor has a pod that never ran."""
    if resource.key != PODS or not obj["spec"].get("nodeName") or obj.get("status", {}).get("phase") in _ENDED:
        return 0
    if options.grace_seconds is not None:
        return max(options.grace_seconds, 0)
    return int(obj["spec"].get("terminationGracePeriodSeconds", _DEFAULT_GRACE_SECONDS))
