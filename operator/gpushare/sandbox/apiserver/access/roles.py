"""Roles that every cluster has from the start, and those of the programs that stand in for a control plane.

Real clusters have more rules in `admin`, `edit` and `view`, and one role for each controller; here each has what this
project's objects and tests can tell apart.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from gpushare.domain.manifests import Manifest
from gpushare.sandbox.apiserver.access.authorization import GROUP

_READ = ("get", "list", "watch")
_WRITE = ("create", "delete", "deletecollection", "patch", "update")
_ALL = ("*",)
_WORKLOADS = ("daemonsets", "deployments", "deployments/scale", "replicasets", "replicasets/scale", "statefulsets",
              "statefulsets/scale")  # fmt: skip
_CORE = ("configmaps", "endpoints", "persistentvolumeclaims", "pods", "serviceaccounts", "services")
_PUBLIC = ("/healthz", "/livez", "/readyz", "/version", "/version/")
_DISCOVERY = ("/api", "/api/*", "/apis", "/apis/*", "/openapi", "/openapi/*", *_PUBLIC)


def _rule(groups: tuple[str, ...], resources: tuple[str, ...], verbs: tuple[str, ...]) -> Manifest:
    return {"apiGroups": list(groups), "resources": list(resources), "verbs": list(verbs)}


def _paths(paths: tuple[str, ...], verbs: tuple[str, ...] = ("get",)) -> Manifest:
    return {"nonResourceURLs": list(paths), "verbs": list(verbs)}


_VIEW = (
    _rule(("",), (*_CORE, "bindings", "events", "limitranges", "namespaces", "namespaces/status", "pods/log", "pods/status",
                  "resourcequotas"), _READ),
    _rule(("apps",), ("controllerrevisions", *_WORKLOADS, "daemonsets/status", "deployments/status"), _READ),
    _rule(("batch",), ("cronjobs", "jobs"), _READ),
    _rule(("discovery.k8s.io",), ("endpointslices",), _READ),
    _rule(("networking.k8s.io",), ("ingresses", "networkpolicies"), _READ),
    _rule(("policy",), ("poddisruptionbudgets",), _READ),
)  # fmt: skip
_EDIT = (
    *_VIEW,
    _rule(("",), (*_CORE, "pods/attach", "pods/exec", "pods/portforward", "pods/proxy", "secrets"), _WRITE),
    _rule(("",), ("pods/eviction", "serviceaccounts/token", "events"), ("create",)),
    _rule(("",), ("secrets",), _READ),
    _rule(("apps",), _WORKLOADS, _WRITE),
    _rule(("batch",), ("cronjobs", "jobs"), _WRITE),
    _rule(("coordination.k8s.io",), ("leases",), (*_READ, *_WRITE)),
    _rule(("networking.k8s.io",), ("ingresses", "networkpolicies"), _WRITE),
    _rule(("policy",), ("poddisruptionbudgets",), _WRITE),
)
_ADMIN = (
    *_EDIT,
    _rule((GROUP,), ("rolebindings", "roles"), (*_READ, *_WRITE)),
    _rule(("authorization.k8s.io",), ("localsubjectaccessreviews",), ("create",)),
)
_NODE = (
    _rule(("",), ("nodes",), ("create", *_READ, "patch", "update", "delete")),
    _rule(("",), ("nodes/status",), ("patch", "update")),
    _rule(("",), ("pods",), (*_READ, "create", "delete")),
    _rule(("",), ("pods/status",), ("patch", "update")),
    _rule(("",), ("configmaps", "secrets", "services", "persistentvolumeclaims", "persistentvolumes"), _READ),
    _rule(("",), ("serviceaccounts",), ("get",)),
    _rule(("",), ("serviceaccounts/token",), ("create",)),
    _rule(("",), ("pods/eviction",), ("create",)),
    _rule(("", "events.k8s.io"), ("events",), ("create", "patch", "update")),
    _rule(("coordination.k8s.io",), ("leases",), ("create", "delete", "get", "patch", "update")),
    _rule(("node.k8s.io",), ("runtimeclasses",), _READ),
    _rule(("storage.k8s.io",), ("csidrivers", "csinodes", "volumeattachments"), _READ),
    _rule(("authentication.k8s.io",), ("tokenreviews",), ("create",)),
    _rule(("authorization.k8s.io",), ("localsubjectaccessreviews", "subjectaccessreviews"), ("create",)),
    _rule(("resource.k8s.io",), ("resourceclaims",), ("get",)),
    _rule(("resource.k8s.io",), ("resourceslices",), (*_READ, *_WRITE)),
)
_SCHEDULER = (
    _rule(("",), ("configmaps", "namespaces", "nodes", "persistentvolumeclaims", "persistentvolumes", "pods",
                  "replicationcontrollers", "services"), _READ),
    _rule(("",), ("bindings", "pods/binding"), ("create",)),
    _rule(("",), ("pods",), ("delete",)),
    _rule(("",), ("pods/status",), ("patch", "update")),
    _rule(("", "events.k8s.io"), ("events",), ("create", "patch", "update")),
    _rule(("apps",), ("replicasets", "statefulsets"), _READ),
    _rule(("coordination.k8s.io",), ("leases",), ("create", "get", "list", "patch", "update", "watch")),
    _rule(("policy",), ("poddisruptionbudgets",), _READ),
    _rule(("storage.k8s.io",), _ALL, _READ),
    _rule(("resource.k8s.io",), _ALL, _READ),
)  # fmt: skip
_CONTROLLERS = (
    _rule(_ALL, _ALL, _READ),
    _rule(("",), ("nodes", "pods", "configmaps", "endpoints", "serviceaccounts", "services", "namespaces"), _WRITE),
    _rule(("",), ("nodes/status", "pods/status", "services/status", "namespaces/finalize"), ("patch", "update")),
    _rule(("",), ("serviceaccounts/token", "pods/eviction"), ("create",)),
    _rule(("", "events.k8s.io"), ("events",), ("create", "patch", "update")),
    _rule(("apps", "batch", "policy", "discovery.k8s.io"), _ALL, _WRITE),
    _rule(("coordination.k8s.io",), ("leases",), ("create", "get", "update", "patch", "delete")),
)
_SELF = (
    _rule(("authorization.k8s.io",), ("selfsubjectaccessreviews", "selfsubjectrulesreviews"), ("create",)),
    _rule(("authentication.k8s.io",), ("selfsubjectreviews",), ("create",)),
)

_ROLES: dict[str, tuple[Manifest, ...]] = {
    "admin": _ADMIN,
    "cluster-admin": (_rule(_ALL, _ALL, _ALL), _paths(_ALL, _ALL)),
    "edit": _EDIT,
    "system:basic-user": _SELF,
    "system:discovery": (_paths(_DISCOVERY),),
    "system:kube-controller-manager": _CONTROLLERS,
    "system:kube-scheduler": _SCHEDULER,
    "system:node": _NODE,
    "system:public-info-viewer": (_paths(_PUBLIC),),
    "view": _VIEW,
}
_GROUP, _USER = "Group", "User"
_BINDINGS: dict[str, tuple[tuple[str, str], ...]] = {
    "cluster-admin": ((_GROUP, "system:masters"),),
    "system:basic-user": ((_GROUP, "system:authenticated"),),
    "system:discovery": ((_GROUP, "system:authenticated"),),
    "system:kube-controller-manager": ((_USER, "system:kube-controller-manager"),),
    "system:kube-scheduler": ((_USER, "system:kube-scheduler"),),
    "system:node": ((_GROUP, "system:nodes"),),
    "system:public-info-viewer": ((_GROUP, "system:authenticated"), (_GROUP, "system:unauthenticated")),
}


def bootstrap() -> Iterator[Manifest]:
    """The ClusterRoles and ClusterRoleBindings to create in a new cluster."""
    for name, rules in _ROLES.items():
        yield _manifest("ClusterRole", name, rules=list(rules))
    for name, subjects in _BINDINGS.items():
        yield _manifest(
            "ClusterRoleBinding", name,
            roleRef={"apiGroup": GROUP, "kind": "ClusterRole", "name": name},
            subjects=[{"apiGroup": GROUP, "kind": kind, "name": subject} for kind, subject in subjects],
        )  # fmt: skip


def _manifest(kind: str, name: str, **content: Any) -> Manifest:
    metadata = {
        "name": name,
        "annotations": {"rbac.authorization.kubernetes.io/autoupdate": "true"},
        "labels": {"kubernetes.io/bootstrapping": "rbac-defaults"},
    }
    return {"apiVersion": f"{GROUP}/v1", "kind": kind, "metadata": metadata, **content}
