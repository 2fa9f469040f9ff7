"""Kubernetes objects as plain data, the kinds that we speak of, and the key that names one object."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeAlias

Manifest: TypeAlias = dict[str, Any]
"""A Kubernetes object as JSON; the only untyped mapping that crosses package borders."""


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of object and where the API server has it."""

    group: str
    """Empty for the core group."""
    version: str
    kind: str
    plural: str
    namespaced: bool

    @property
    def api_version(self) -> str:
        """As manifests spell it: `v1`, `apps/v1`."""
        return f"{self.group}/{self.version}" if self.group else self.version

    def path(self, namespace: str = "", name: str = "", subresource: str = "") -> str:
        """URL path of the collection, of one object, or of a subresource of it; without a namespace, of all namespaces."""
        root = f"/apis/{self.group}/{self.version}" if self.group else f"/api/{self.version}"
        parts = [root]
        if self.namespaced and namespace:
            parts += ["namespaces", namespace]
        parts.append(self.plural)
        parts += [part for part in (name, subresource) if part]
        return "/".join(parts)


@dataclass(frozen=True, slots=True)
class ObjectKey:
    """Names one object in a cluster."""

    kind: Kind
    name: str
    namespace: str = ""

    def __str__(self) -> str:
        place = f"{self.namespace}/{self.name}" if self.namespace else self.name
        return f"{self.kind.kind} {place}"


CLUSTER_POLICY = Kind("nvidia.com", "v1", "ClusterPolicy", "clusterpolicies", namespaced=False)
GPU_NODE = Kind("gpushare.dev", "v1alpha1", "GPUNode", "gpunodes", namespaced=False)
GPU_CLUSTER = Kind("nvidia.com", "v1alpha1", "GPUCluster", "gpuclusters", namespaced=False)
NODE_FEATURE = Kind("nfd.k8s-sigs.io", "v1alpha1", "NodeFeature", "nodefeatures", namespaced=True)

NAMESPACE = Kind("", "v1", "Namespace", "namespaces", namespaced=False)
NODE = Kind("", "v1", "Node", "nodes", namespaced=False)
POD = Kind("", "v1", "Pod", "pods", namespaced=True)
CONFIG_MAP = Kind("", "v1", "ConfigMap", "configmaps", namespaced=True)
SECRET = Kind("", "v1", "Secret", "secrets", namespaced=True)
SERVICE_ACCOUNT = Kind("", "v1", "ServiceAccount", "serviceaccounts", namespaced=True)
SERVICE = Kind("", "v1", "Service", "services", namespaced=True)
EVENT = Kind("", "v1", "Event", "events", namespaced=True)
RESOURCE_QUOTA = Kind("", "v1", "ResourceQuota", "resourcequotas", namespaced=True)
DAEMON_SET = Kind("apps", "v1", "DaemonSet", "daemonsets", namespaced=True)
DEPLOYMENT = Kind("apps", "v1", "Deployment", "deployments", namespaced=True)
REPLICA_SET = Kind("apps", "v1", "ReplicaSet", "replicasets", namespaced=True)
CONTROLLER_REVISION = Kind("apps", "v1", "ControllerRevision", "controllerrevisions", namespaced=True)
JOB = Kind("batch", "v1", "Job", "jobs", namespaced=True)
LEASE = Kind("coordination.k8s.io", "v1", "Lease", "leases", namespaced=True)
RUNTIME_CLASS = Kind("node.k8s.io", "v1", "RuntimeClass", "runtimeclasses", namespaced=False)
_RBAC = ("rbac.authorization.k8s.io", "v1")
ROLE = Kind(*_RBAC, "Role", "roles", namespaced=True)
ROLE_BINDING = Kind(*_RBAC, "RoleBinding", "rolebindings", namespaced=True)
CLUSTER_ROLE = Kind(*_RBAC, "ClusterRole", "clusterroles", namespaced=False)
CLUSTER_ROLE_BINDING = Kind(*_RBAC, "ClusterRoleBinding", "clusterrolebindings", namespaced=False)
CUSTOM_RESOURCE_DEFINITION = Kind(
    "apiextensions.k8s.io", "v1", "CustomResourceDefinition", "customresourcedefinitions", namespaced=False
)
SERVICE_MONITOR = Kind("monitoring.coreos.com", "v1", "ServiceMonitor", "servicemonitors", namespaced=True)
SELF_SUBJECT_RULES_REVIEW = Kind(
    "authorization.k8s.io", "v1", "SelfSubjectRulesReview", "selfsubjectrulesreviews", namespaced=False
)

_ADMISSION = ("admissionregistration.k8s.io", "v1")
MUTATING_WEBHOOK_CONFIGURATION = Kind(
    *_ADMISSION, "MutatingWebhookConfiguration", "mutatingwebhookconfigurations", namespaced=False
)
VALIDATING_WEBHOOK_CONFIGURATION = Kind(
    *_ADMISSION, "ValidatingWebhookConfiguration", "validatingwebhookconfigurations", namespaced=False
)
VALIDATING_ADMISSION_POLICY = Kind(
    *_ADMISSION, "ValidatingAdmissionPolicy", "validatingadmissionpolicies", namespaced=False
)
VALIDATING_ADMISSION_POLICY_BINDING = Kind(
    *_ADMISSION, "ValidatingAdmissionPolicyBinding", "validatingadmissionpolicybindings", namespaced=False
)

KINDS = (
    CLUSTER_POLICY, GPU_NODE, GPU_CLUSTER, NODE_FEATURE,
    NAMESPACE, NODE, POD, CONFIG_MAP, SECRET, SERVICE_ACCOUNT, SERVICE, EVENT, RESOURCE_QUOTA,
    DAEMON_SET, DEPLOYMENT, REPLICA_SET, CONTROLLER_REVISION, JOB, LEASE, RUNTIME_CLASS, ROLE, ROLE_BINDING, CLUSTER_ROLE,
    CLUSTER_ROLE_BINDING, CUSTOM_RESOURCE_DEFINITION, SELF_SUBJECT_RULES_REVIEW, MUTATING_WEBHOOK_CONFIGURATION,
    VALIDATING_WEBHOOK_CONFIGURATION, SERVICE_MONITOR,
    VALIDATING_ADMISSION_POLICY, VALIDATING_ADMISSION_POLICY_BINDING,
)  # fmt: skip
_BY_TYPE = {(kind.api_version, kind.kind): kind for kind in KINDS}


def kind_of(manifest: Manifest) -> Kind:
    """The kind that a manifest says it is.

    Raises:
        KeyError: a kind that this project never writes.
    """
    return _BY_TYPE[manifest["apiVersion"], manifest["kind"]]


def key_of(manifest: Manifest) -> ObjectKey:
    """The key of a manifest. Raises KeyError as `kind_of`."""
    metadata = manifest["metadata"]
    return ObjectKey(kind_of(manifest), metadata["name"], metadata.get("namespace", ""))
