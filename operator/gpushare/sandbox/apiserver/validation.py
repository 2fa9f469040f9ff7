"""What a server refuses: the rules of the built-in kinds, and of the metadata of all, in a real server's words.

Called by the write path with decoded and defaulted objects, old and new. The schemas of custom kinds are in `crds`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Final, TypeAlias

from gpushare.domain.manifests import Manifest
from gpushare.sandbox.apiserver import (
    validation_access,
    validation_definitions,
    validation_kinds,
    validation_metadata,
    validation_pods,
    validation_workloads,
)
from gpushare.sandbox.apiserver.resources import Key, Resource
from gpushare.sandbox.apiserver.statuses import Cause

_Check: TypeAlias = Callable[[Manifest], Iterator[Cause]]
_UpdateCheck: TypeAlias = Callable[[Manifest, Manifest], Iterator[Cause]]

_RBAC: Final = "rbac.authorization.k8s.io"
_CHECKS: Final[Mapping[Key, _Check]] = {
    ("", "pods"): validation_pods.check_pod,
    ("", "nodes"): validation_kinds.check_node,
    ("", "configmaps"): validation_kinds.check_config_map,
    ("", "secrets"): validation_kinds.check_secret,
    ("", "services"): validation_kinds.check_service,
    ("coordination.k8s.io", "leases"): validation_kinds.check_lease,
    ("node.k8s.io", "runtimeclasses"): validation_kinds.check_runtime_class,
    ("apps", "daemonsets"): validation_workloads.check_daemon_set,
    ("apps", "deployments"): validation_workloads.check_deployment,
    ("apps", "replicasets"): validation_workloads.check_replica_set,
    ("apps", "statefulsets"): validation_workloads.check_stateful_set,
    ("batch", "jobs"): validation_workloads.check_job,
    (_RBAC, "roles"): validation_access.check_role,
    (_RBAC, "clusterroles"): validation_access.check_cluster_role,
    (_RBAC, "rolebindings"): validation_access.check_binding,
    (_RBAC, "clusterrolebindings"): validation_access.check_cluster_binding,
    ("apiextensions.k8s.io", "customresourcedefinitions"): validation_definitions.check,
}
_UPDATE_CHECKS: Final[Mapping[Key, _UpdateCheck]] = {
    ("", "pods"): validation_pods.check_update,
    ("", "nodes"): validation_kinds.check_node_update,
    ("", "configmaps"): validation_kinds.check_frozen_data,
    ("", "secrets"): validation_kinds.check_secret_update,
    ("", "services"): validation_kinds.check_service_update,
    ("node.k8s.io", "runtimeclasses"): validation_kinds.check_runtime_class_update,
    ("apps", "daemonsets"): validation_workloads.check_selector_update,
    ("apps", "deployments"): validation_workloads.check_selector_update,
    ("apps", "replicasets"): validation_workloads.check_selector_update,
    ("batch", "jobs"): validation_workloads.check_job_update,
    (_RBAC, "rolebindings"): validation_access.check_binding_update,
    (_RBAC, "clusterrolebindings"): validation_access.check_binding_update,
    ("apiextensions.k8s.io", "customresourcedefinitions"): validation_definitions.check_update,
}


def validate_create(resource: Resource, obj: Manifest) -> list[Cause]:
    """All that is wrong with a new object; empty when it may be stored."""
    causes = list(validation_metadata.check(resource, obj))
    if resource.kind == "Event":
        return causes + list(validation_kinds.check_event(obj, strict=resource.group != ""))
    check = _CHECKS.get(resource.key)
    return causes + list(check(obj)) if check else causes


def validate_update(resource: Resource, obj: Manifest, old: Manifest, subresource: str = "") -> list[Cause]:
    """All that is wrong with a new state of an object. Through the status subresource only what it can change counts."""
    causes = [*validation_metadata.check_update(obj, old), *validation_metadata.check(resource, obj)]
    if subresource == "status":
        return causes + list(validation_kinds.check_node(obj)) if resource.key == ("", "nodes") else causes
    if subresource == "":
        if change := _UPDATE_CHECKS.get(resource.key):
            causes += change(obj, old)
        if check := _CHECKS.get(resource.key):
            causes += check(obj)
    return causes
