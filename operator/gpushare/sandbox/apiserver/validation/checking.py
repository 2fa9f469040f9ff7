"""Which rules a kind has. Called by `handling.writing` with decoded and completed objects, old and new."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Final, TypeAlias

from gpushare.domain.manifests import Manifest
from gpushare.sandbox.apiserver.resources import CUSTOM_RESOURCE_DEFINITIONS, NODES, PODS, Key, Resource
from gpushare.sandbox.apiserver.statuses import Cause
from gpushare.sandbox.apiserver.validation import (
    access,
    custom,
    definitions,
    kinds,
    metadata,
    pods,
    policies,
    webhooks,
    workloads,
)

_Check: TypeAlias = Callable[[Manifest], Iterator[Cause]]
_UpdateCheck: TypeAlias = Callable[[Manifest, Manifest], Iterator[Cause]]

_ADMISSION: Final = "admissionregistration.k8s.io"
_RBAC: Final = "rbac.authorization.k8s.io"
_CHECKS: Final[Mapping[Key, _Check]] = {
    PODS: pods.check_pod,
    NODES: kinds.check_node,
    ("", "configmaps"): kinds.check_config_map,
    ("", "secrets"): kinds.check_secret,
    ("", "services"): kinds.check_service,
    ("coordination.k8s.io", "leases"): kinds.check_lease,
    ("node.k8s.io", "runtimeclasses"): kinds.check_runtime_class,
    ("scheduling.k8s.io", "priorityclasses"): kinds.check_priority_class,
    ("apps", "daemonsets"): workloads.check_daemon_set,
    ("apps", "deployments"): workloads.check_deployment,
    # A real server says `deployment` here too.
    ("apps", "replicasets"): partial(workloads.check_replicated, word="deployment"),
    ("apps", "statefulsets"): partial(workloads.check_replicated, word="statefulset"),
    ("batch", "jobs"): workloads.check_job,
    (_RBAC, "roles"): partial(access.check_role, namespaced=True),
    (_RBAC, "clusterroles"): partial(access.check_role, namespaced=False),
    (_RBAC, "rolebindings"): partial(access.check_binding, kinds=("Role", "ClusterRole")),
    (_RBAC, "clusterrolebindings"): partial(access.check_binding, kinds=("ClusterRole",)),
    CUSTOM_RESOURCE_DEFINITIONS: definitions.check,
    (_ADMISSION, "validatingadmissionpolicies"): policies.check_policy,
    (_ADMISSION, "validatingadmissionpolicybindings"): policies.check_binding,
    (_ADMISSION, "mutatingwebhookconfigurations"): webhooks.check_configuration,
    (_ADMISSION, "validatingwebhookconfigurations"): webhooks.check_configuration,
}
_UPDATE_CHECKS: Final[Mapping[Key, _UpdateCheck]] = {
    PODS: pods.check_update,
    ("", "configmaps"): kinds.check_frozen_data,
    ("", "secrets"): kinds.check_secret_update,
    ("", "services"): kinds.check_service_update,
    ("apps", "daemonsets"): workloads.check_selector_update,
    ("apps", "deployments"): workloads.check_selector_update,
    ("apps", "replicasets"): workloads.check_selector_update,
    ("batch", "jobs"): workloads.check_job_update,
    (_RBAC, "rolebindings"): access.check_binding_update,
    (_RBAC, "clusterrolebindings"): access.check_binding_update,
    CUSTOM_RESOURCE_DEFINITIONS: definitions.check_update,
}


def check(resource: Resource, obj: Manifest, old: Manifest | None = None, subresource: str = "") -> list[Cause]:
    """All that is wrong with a new object, or with a new state of an old one; empty when it may be stored.

    `resource` is the kind in which the client speaks of it. Through a subresource only what it can change counts.
    """
    causes: list[Cause] = []
    if old is not None:
        causes += metadata.check_update(obj, old)
    causes += metadata.check(resource, obj)
    if old is None and resource.kind == "Event":
        causes += kinds.check_event(obj, strict=resource.group != "")
    if old is not None and not subresource and (change := _UPDATE_CHECKS.get(resource.key)):
        causes += change(obj, old)
    if (not subresource or resource.key == NODES) and (rules := _CHECKS.get(resource.key)):
        causes += rules(obj)
    if resource.custom:
        causes += custom.validate(obj, resource.schema, subresource)
    return causes
