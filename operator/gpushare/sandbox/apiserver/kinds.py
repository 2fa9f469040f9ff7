"""The built-in kinds of Kubernetes 1.36, in the order in which discovery lists their groups. Data, and how it is read.

A kind is a line: its name, its plural, and words for what is not usual about it:

    cluster          its objects have no namespace
    short=a,b        short names
    sub=a,b          subresources
    all, extensions  the category that it belongs to
    generation       changes of its content are counted in metadata.generation
    conditional      a PUT must name the resourceVersion
    returned         DELETE answers with the object
    verbs=a,b        only these
    fields=a,b       field selectors besides metadata.name and metadata.namespace
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any, Final

from gpushare.sandbox.apiserver.objects import events
from gpushare.sandbox.apiserver.resources import VERBS, Resource, View

_ABOUT: Final = ("kind", "namespace", "name", "uid", "apiVersion", "resourceVersion", "fieldPath")
_POD_FIELDS: Final = (
    "spec.nodeName,spec.restartPolicy,spec.schedulerName,spec.serviceAccountName,spec.hostNetwork,status.phase,status.podIP,"
    "status.podIPs,status.nominatedNodeName"
)
_POD_DOORS: Final = "attach,binding,ephemeralcontainers,eviction,exec,log,portforward,proxy,resize,status"
_NO_COLLECTIONS: Final = ",".join(verb for verb in VERBS if verb != "deletecollection")

_KINDS: Final[Mapping[str, tuple[str, ...]]] = {
    "v1": (
        "Binding bindings verbs=create",
        "ComponentStatus componentstatuses cluster short=cs verbs=get,list",
        "ConfigMap configmaps short=cm",
        "Endpoints endpoints short=ep",
        "Event events short=ev fields="
        + ",".join((*(f"involvedObject.{name}" for name in _ABOUT), "reason", "reportingComponent", "source", "type")),
        "LimitRange limitranges short=limits",
        f"Namespace namespaces cluster short=ns sub=finalize,status fields=status.phase verbs={_NO_COLLECTIONS}",
        "Node nodes cluster short=no sub=proxy,status fields=spec.unschedulable",
        "PersistentVolumeClaim persistentvolumeclaims short=pvc sub=status returned",
        "PersistentVolume persistentvolumes cluster short=pv sub=status returned",
        f"Pod pods short=po generation returned all sub={_POD_DOORS} fields={_POD_FIELDS}",
        "PodTemplate podtemplates generation returned",
        "ReplicationController replicationcontrollers short=rc sub=scale,status generation all fields=status.replicas",
        "ResourceQuota resourcequotas short=quota sub=status returned",
        "Secret secrets fields=type",
        "ServiceAccount serviceaccounts short=sa sub=token returned",
        "Service services short=svc sub=proxy,status returned all fields=spec.clusterIP,spec.type",
    ),
    "apiregistration.k8s.io/v1": ("APIService apiservices cluster sub=status extensions conditional",),
    "apps/v1": (
        "ControllerRevision controllerrevisions",
        "DaemonSet daemonsets short=ds sub=status generation all",
        "Deployment deployments short=deploy sub=scale,status generation all",
        "ReplicaSet replicasets short=rs sub=scale,status generation all fields=status.replicas",
        "StatefulSet statefulsets short=sts sub=scale,status generation all",
    ),
    "events.k8s.io/v1": (
        "Event events short=ev fields="
        + ",".join((*(f"regarding.{name}" for name in _ABOUT), "reason", "reportingController", "type")),
    ),
    "authentication.k8s.io/v1": (
        "SelfSubjectReview selfsubjectreviews cluster verbs=create",
        "TokenReview tokenreviews cluster verbs=create",
    ),
    "authorization.k8s.io/v1": (
        "LocalSubjectAccessReview localsubjectaccessreviews verbs=create",
        "SelfSubjectAccessReview selfsubjectaccessreviews cluster verbs=create",
        "SelfSubjectRulesReview selfsubjectrulesreviews cluster verbs=create",
        "SubjectAccessReview subjectaccessreviews cluster verbs=create",
    ),
    "autoscaling/v2": ("HorizontalPodAutoscaler horizontalpodautoscalers short=hpa sub=status all",),
    "autoscaling/v1": ("HorizontalPodAutoscaler horizontalpodautoscalers short=hpa sub=status all",),
    "batch/v1": (
        "CronJob cronjobs short=cj sub=status generation all",
        "Job jobs sub=status generation all fields=status.successful",
    ),
    "certificates.k8s.io/v1": (
        "CertificateSigningRequest certificatesigningrequests cluster short=csr sub=approval,status fields=spec.signerName",
    ),
    "networking.k8s.io/v1": (
        "IngressClass ingressclasses cluster generation",
        "Ingress ingresses short=ing sub=status generation",
        "IPAddress ipaddresses cluster short=ip",
        "NetworkPolicy networkpolicies short=netpol generation",
        "ServiceCIDR servicecidrs cluster sub=status",
    ),
    "policy/v1": ("PodDisruptionBudget poddisruptionbudgets short=pdb sub=status generation conditional",),
    "rbac.authorization.k8s.io/v1": (
        "ClusterRoleBinding clusterrolebindings cluster",
        "ClusterRole clusterroles cluster",
        "RoleBinding rolebindings",
        "Role roles",
    ),
    "storage.k8s.io/v1": (
        "CSIDriver csidrivers cluster",
        "CSINode csinodes cluster",
        "CSIStorageCapacity csistoragecapacities",
        "StorageClass storageclasses cluster short=sc returned",
        "VolumeAttachment volumeattachments cluster sub=status",
        "VolumeAttributesClass volumeattributesclasses cluster short=vac",
    ),
    "admissionregistration.k8s.io/v1": (
        "MutatingAdmissionPolicy mutatingadmissionpolicies cluster generation conditional extensions",
        "MutatingAdmissionPolicyBinding mutatingadmissionpolicybindings cluster generation conditional extensions",
        "MutatingWebhookConfiguration mutatingwebhookconfigurations cluster generation conditional extensions",
        "ValidatingAdmissionPolicy validatingadmissionpolicies cluster generation conditional extensions sub=status",
        "ValidatingAdmissionPolicyBinding validatingadmissionpolicybindings cluster generation conditional extensions",
        "ValidatingWebhookConfiguration validatingwebhookconfigurations cluster generation conditional extensions",
    ),
    "apiextensions.k8s.io/v1": (
        "CustomResourceDefinition customresourcedefinitions cluster generation conditional extensions short=crd,crds sub=status",
    ),
    "scheduling.k8s.io/v1": ("PriorityClass priorityclasses cluster short=pc generation",),
    "coordination.k8s.io/v1": ("Lease leases conditional",),
    "node.k8s.io/v1": ("RuntimeClass runtimeclasses cluster conditional",),
    "discovery.k8s.io/v1": ("EndpointSlice endpointslices generation",),
    "resource.k8s.io/v1": (
        "DeviceClass deviceclasses cluster generation",
        "ResourceClaim resourceclaims sub=status",
        "ResourceClaimTemplate resourceclaimtemplates",
        "ResourceSlice resourceslices cluster generation fields=spec.nodeName,spec.driver",
    ),
    "flowcontrol.apiserver.k8s.io/v1": (
        "FlowSchema flowschemas cluster generation conditional sub=status",
        "PriorityLevelConfiguration prioritylevelconfigurations cluster generation conditional sub=status",
    ),
}
_WORDS: Final[Mapping[str, Mapping[str, Any]]] = {
    "cluster": {"namespaced": False}, "all": {"categories": ("all",)}, "extensions": {"categories": ("api-extensions",)},
    "generation": {"has_generation": True}, "conditional": {"unconditional_update": False}, "returned": {"returns_deleted": True},
}  # fmt: skip
_LISTS: Final = {"short": "short_names", "sub": "subresources", "verbs": "verbs", "fields": "fields"}


def built_in() -> list[Resource]:
    """Every built-in kind, the groups in the order of their priority."""
    found = [resource for api_version, lines in _KINDS.items() for resource in _read(api_version, lines)]
    event = next(resource for resource in found if resource.api_version == "v1" and resource.kind == "Event")
    view = View(event, events.show, events.read, events.stored_field)
    return [replace(each, view=view) if each.group == "events.k8s.io" else each for each in found]


def _read(api_version: str, lines: tuple[str, ...]) -> Iterator[Resource]:
    group, _, version = api_version.rpartition("/")
    for line in lines:
        kind, plural, *words = line.split()
        values: dict[str, Any] = {"namespaced": True}
        for word in words:
            name, _, content = word.partition("=")
            values |= {_LISTS[name]: tuple(content.split(","))} if content else _WORDS[name]
        yield Resource(group=group, version=version, kind=kind, plural=plural, singular=kind.lower(), **values)
