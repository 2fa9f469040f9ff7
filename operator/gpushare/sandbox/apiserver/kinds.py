"""The built-in kinds of Kubernetes 1.36, in the order in which discovery lists their groups.

Data only; the behaviour that a few of them need besides (pods, nodes, events, ...) is in the modules of that behaviour.
"""

from __future__ import annotations

from typing import Any

from gpushare.sandbox.apiserver import events
from gpushare.sandbox.apiserver.resources import Resource, View, versioned

_CREATE = ("create",)
_READ = ("get", "list")
_OBJECT_OF_EVENT = ("kind", "namespace", "name", "uid", "apiVersion", "resourceVersion", "fieldPath")


def _kind(group: str, kind: str, plural: str, **more: Any) -> Resource:
    values = {"version": "v1", "namespaced": True, "singular": kind.lower(), **more}
    return Resource(group=group, kind=kind, plural=plural, **values)


_EVENT = _kind(
    "", "Event", "events", short_names=("ev",),
    fields=(*(f"involvedObject.{name}" for name in _OBJECT_OF_EVENT), "reason", "reportingComponent", "source", "type"),
)  # fmt: skip


def _core() -> list[Resource]:
    everywhere: dict[str, Any] = {"categories": ("all",)}
    return [
        _kind("", "Binding", "bindings", verbs=_CREATE),
        _kind("", "ComponentStatus", "componentstatuses", namespaced=False, short_names=("cs",), verbs=_READ),
        _kind("", "ConfigMap", "configmaps", short_names=("cm",)),
        _kind("", "Endpoints", "endpoints", short_names=("ep",)),
        _EVENT,
        _kind("", "LimitRange", "limitranges", short_names=("limits",)),
        _kind(
            "", "Namespace", "namespaces", namespaced=False, short_names=("ns",), subresources=("finalize", "status"),
            fields=("status.phase",), verbs=("create", "delete", "get", "list", "patch", "update", "watch"),
        ),
        _kind(
            "", "Node", "nodes", namespaced=False, short_names=("no",), subresources=("proxy", "status"),
            fields=("spec.unschedulable",),
        ),
        _kind(
            "", "PersistentVolumeClaim", "persistentvolumeclaims", short_names=("pvc",), subresources=("status",),
            returns_deleted=True,
        ),
        _kind(
            "", "PersistentVolume", "persistentvolumes", namespaced=False, short_names=("pv",), subresources=("status",),
            returns_deleted=True,
        ),
        _kind(
            "", "Pod", "pods", short_names=("po",), has_generation=True, returns_deleted=True, **everywhere,
            subresources=("attach", "binding", "ephemeralcontainers", "eviction", "exec", "log", "portforward", "proxy",
                          "resize", "status"),
            fields=("spec.nodeName", "spec.restartPolicy", "spec.schedulerName", "spec.serviceAccountName", "spec.hostNetwork",
                    "status.phase", "status.podIP", "status.podIPs", "status.nominatedNodeName"),
        ),
        _kind("", "PodTemplate", "podtemplates", has_generation=True, returns_deleted=True),
        _kind(
            "", "ReplicationController", "replicationcontrollers", short_names=("rc",), subresources=("scale", "status"),
            has_generation=True, fields=("status.replicas",), **everywhere,
        ),
        _kind("", "ResourceQuota", "resourcequotas", short_names=("quota",), subresources=("status",), returns_deleted=True),
        _kind("", "Secret", "secrets", fields=("type",)),
        _kind("", "ServiceAccount", "serviceaccounts", short_names=("sa",), subresources=("token",), returns_deleted=True),
        _kind(
            "", "Service", "services", short_names=("svc",), subresources=("proxy", "status"), returns_deleted=True,
            fields=("spec.clusterIP", "spec.type"), **everywhere,
        ),
    ]  # fmt: skip


def _apps() -> list[Resource]:
    shared: dict[str, Any] = {"has_generation": True, "categories": ("all",)}
    return [
        _kind("apps", "ControllerRevision", "controllerrevisions"),
        _kind("apps", "DaemonSet", "daemonsets", short_names=("ds",), subresources=("status",), **shared),
        _kind("apps", "Deployment", "deployments", short_names=("deploy",), subresources=("scale", "status"), **shared),
        _kind(
            "apps", "ReplicaSet", "replicasets", short_names=("rs",), subresources=("scale", "status"),
            fields=("status.replicas",), **shared,
        ),
        _kind("apps", "StatefulSet", "statefulsets", short_names=("sts",), subresources=("scale", "status"), **shared),
        _kind("batch", "CronJob", "cronjobs", short_names=("cj",), subresources=("status",), **shared),
        _kind("batch", "Job", "jobs", subresources=("status",), fields=("status.successful",), **shared),
    ]  # fmt: skip


def _access() -> list[Resource]:
    authentication, authorization, rbac = "authentication.k8s.io", "authorization.k8s.io", "rbac.authorization.k8s.io"
    review: dict[str, Any] = {"verbs": _CREATE, "namespaced": False}
    return [
        _kind(authentication, "SelfSubjectReview", "selfsubjectreviews", **review),
        _kind(authentication, "TokenReview", "tokenreviews", **review),
        _kind(authorization, "LocalSubjectAccessReview", "localsubjectaccessreviews", verbs=_CREATE),
        _kind(authorization, "SelfSubjectAccessReview", "selfsubjectaccessreviews", **review),
        _kind(authorization, "SelfSubjectRulesReview", "selfsubjectrulesreviews", **review),
        _kind(authorization, "SubjectAccessReview", "subjectaccessreviews", **review),
        _kind(rbac, "ClusterRoleBinding", "clusterrolebindings", namespaced=False),
        _kind(rbac, "ClusterRole", "clusterroles", namespaced=False),
        _kind(rbac, "RoleBinding", "rolebindings"),
        _kind(rbac, "Role", "roles"),
    ]


def _extensions() -> list[Resource]:
    admission, flow = "admissionregistration.k8s.io", "flowcontrol.apiserver.k8s.io"
    policy: dict[str, Any] = {"namespaced": False, "has_generation": True, "unconditional_update": False}
    webhook: dict[str, Any] = {**policy, "categories": ("api-extensions",)}
    return [
        _kind(admission, "MutatingAdmissionPolicy", "mutatingadmissionpolicies", **webhook),
        _kind(admission, "MutatingAdmissionPolicyBinding", "mutatingadmissionpolicybindings", **webhook),
        _kind(admission, "MutatingWebhookConfiguration", "mutatingwebhookconfigurations", **webhook),
        _kind(admission, "ValidatingAdmissionPolicy", "validatingadmissionpolicies", subresources=("status",), **webhook),
        _kind(admission, "ValidatingAdmissionPolicyBinding", "validatingadmissionpolicybindings", **webhook),
        _kind(admission, "ValidatingWebhookConfiguration", "validatingwebhookconfigurations", **webhook),
        _kind(
            "apiextensions.k8s.io", "CustomResourceDefinition", "customresourcedefinitions",
            short_names=("crd", "crds"), subresources=("status",), **webhook,
        ),
        _kind(
            "apiregistration.k8s.io", "APIService", "apiservices", namespaced=False, subresources=("status",),
            categories=("api-extensions",), unconditional_update=False,
        ),
        _kind(flow, "FlowSchema", "flowschemas", subresources=("status",), **policy),
        _kind(flow, "PriorityLevelConfiguration", "prioritylevelconfigurations", subresources=("status",), **policy),
    ]  # fmt: skip


def _network_and_storage() -> list[Resource]:
    network, storage = "networking.k8s.io", "storage.k8s.io"
    return [
        _kind("discovery.k8s.io", "EndpointSlice", "endpointslices", has_generation=True),
        _kind(network, "IngressClass", "ingressclasses", namespaced=False, has_generation=True),
        _kind(network, "Ingress", "ingresses", short_names=("ing",), subresources=("status",), has_generation=True),
        _kind(network, "IPAddress", "ipaddresses", namespaced=False, short_names=("ip",)),
        _kind(network, "NetworkPolicy", "networkpolicies", short_names=("netpol",), has_generation=True),
        _kind(network, "ServiceCIDR", "servicecidrs", namespaced=False, subresources=("status",)),
        _kind(storage, "CSIDriver", "csidrivers", namespaced=False),
        _kind(storage, "CSINode", "csinodes", namespaced=False),
        _kind(storage, "CSIStorageCapacity", "csistoragecapacities"),
        _kind(storage, "StorageClass", "storageclasses", namespaced=False, short_names=("sc",), returns_deleted=True),
        _kind(storage, "VolumeAttachment", "volumeattachments", namespaced=False, subresources=("status",)),
        _kind(storage, "VolumeAttributesClass", "volumeattributesclasses", namespaced=False, short_names=("vac",)),
    ]


def _others() -> list[Resource]:
    scaler = _kind(
        "autoscaling", "HorizontalPodAutoscaler", "horizontalpodautoscalers", version="v2", short_names=("hpa",),
        subresources=("status",), categories=("all",),
    )  # fmt: skip
    return [
        _kind(
            "events.k8s.io", "Event", "events", short_names=("ev",), view=View(_EVENT, events.show, events.read),
            fields=(*(f"regarding.{name}" for name in _OBJECT_OF_EVENT), "reason", "reportingController", "type"),
        ),
        scaler,
        versioned(scaler, "v1"),
        _kind(
            "certificates.k8s.io", "CertificateSigningRequest", "certificatesigningrequests", namespaced=False,
            short_names=("csr",), subresources=("approval", "status"), fields=("spec.signerName",),
        ),
        _kind("coordination.k8s.io", "Lease", "leases", unconditional_update=False),
        _kind("node.k8s.io", "RuntimeClass", "runtimeclasses", namespaced=False, unconditional_update=False),
        _kind(
            "policy", "PodDisruptionBudget", "poddisruptionbudgets", short_names=("pdb",), subresources=("status",),
            has_generation=True, unconditional_update=False,
        ),
        _kind("resource.k8s.io", "DeviceClass", "deviceclasses", namespaced=False, has_generation=True),
        _kind("resource.k8s.io", "ResourceClaim", "resourceclaims", subresources=("status",)),
        _kind("resource.k8s.io", "ResourceClaimTemplate", "resourceclaimtemplates"),
        _kind(
            "resource.k8s.io", "ResourceSlice", "resourceslices", namespaced=False, has_generation=True,
            fields=("spec.nodeName", "spec.driver"),
        ),
        _kind("scheduling.k8s.io", "PriorityClass", "priorityclasses", namespaced=False, short_names=("pc",),
              has_generation=True),
    ]  # fmt: skip


def built_in() -> list[Resource]:
    """Every built-in kind, the groups in the order of their priority."""
    everything = [*_core(), *_apps(), *_others(), *_access(), *_network_and_storage(), *_extensions()]
    return sorted(everything, key=lambda resource: _PRIORITY.index(resource.group))


_PRIORITY = (
    "", "apiregistration.k8s.io", "apps", "events.k8s.io", "authentication.k8s.io", "authorization.k8s.io", "autoscaling",
    "batch", "certificates.k8s.io", "networking.k8s.io", "policy", "rbac.authorization.k8s.io", "storage.k8s.io",
    "admissionregistration.k8s.io", "apiextensions.k8s.io", "scheduling.k8s.io", "coordination.k8s.io", "node.k8s.io",
    "discovery.k8s.io", "resource.k8s.io", "flowcontrol.apiserver.k8s.io",
)  # fmt: skip
