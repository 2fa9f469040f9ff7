"""What a server fills in where a manifest says nothing: in pods and templates, workloads, services, webhooks, roles.

One walk along the schema; what it does at each value depends on the value's definition, so a container gets the same
defaults wherever it stands. Called by the write path for built-in kinds, before validation; custom ones have theirs in
`custom_defaults`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from gpushare.domain.manifests import Manifest
from gpushare.sandbox.apiserver.objects import always_present
from gpushare.sandbox.apiserver.objects.jsonvalues import copied
from gpushare.sandbox.apiserver.objects.schemas import Schema

_RBAC_GROUP: Final = "rbac.authorization.k8s.io"
_FILE_MODE: Final[Mapping[str, Any]] = {"defaultMode": 0o644}
_WEBHOOK: Final[Mapping[str, Any]] = {
    "failurePolicy": "Fail", "matchPolicy": "Equivalent", "namespaceSelector": {}, "objectSelector": {},
    "timeoutSeconds": 10,
}  # fmt: skip

_CONSTANTS: Final[Mapping[str, Mapping[str, Any]]] = {
    "api.core.v1.PodSpec": {
        "dnsPolicy": "ClusterFirst", "restartPolicy": "Always", "schedulerName": "default-scheduler",
        "securityContext": {}, "terminationGracePeriodSeconds": 30,
    },
    "api.core.v1.Container": {
        "terminationMessagePath": "/dev/termination-log", "terminationMessagePolicy": "File",
    },
    "api.core.v1.ContainerPort": {"protocol": "TCP"},
    "api.core.v1.Probe": {"timeoutSeconds": 1, "periodSeconds": 10, "successThreshold": 1, "failureThreshold": 3},
    "api.core.v1.HTTPGetAction": {"path": "/", "scheme": "HTTP"},
    "api.core.v1.ObjectFieldSelector": {"apiVersion": "v1"},
    "api.core.v1.SecretVolumeSource": _FILE_MODE,
    "api.core.v1.ConfigMapVolumeSource": _FILE_MODE,
    "api.core.v1.DownwardAPIVolumeSource": _FILE_MODE,
    "api.core.v1.ProjectedVolumeSource": _FILE_MODE,
    "api.core.v1.ServiceAccountTokenProjection": {"expirationSeconds": 3600},
    "api.core.v1.HostPathVolumeSource": {"type": ""},
    "api.core.v1.ServiceSpec": {"sessionAffinity": "None", "type": "ClusterIP"},
    "api.core.v1.ServicePort": {"protocol": "TCP"},
    "api.core.v1.Secret": {"type": "Opaque"},
    "api.apps.v1.DaemonSetSpec": {"revisionHistoryLimit": 10},
    "api.apps.v1.DaemonSetUpdateStrategy": {"type": "RollingUpdate"},
    "api.apps.v1.RollingUpdateDaemonSet": {"maxUnavailable": 1, "maxSurge": 0},
    "api.apps.v1.DeploymentSpec": {"replicas": 1, "revisionHistoryLimit": 10, "progressDeadlineSeconds": 600},
    "api.apps.v1.DeploymentStrategy": {"type": "RollingUpdate"},
    "api.apps.v1.RollingUpdateDeployment": {"maxUnavailable": "25%", "maxSurge": "25%"},
    "api.apps.v1.ReplicaSetSpec": {"replicas": 1},
    "api.batch.v1.JobSpec": {"backoffLimit": 6, "completionMode": "NonIndexed", "suspend": False},
    "api.rbac.v1.RoleRef": {"apiGroup": _RBAC_GROUP},
    "api.scheduling.v1.PriorityClass": {"preemptionPolicy": "PreemptLowerPriority"},
    "api.admissionregistration.v1.ValidatingWebhook": _WEBHOOK,
    "api.admissionregistration.v1.MutatingWebhook": {**_WEBHOOK, "reinvocationPolicy": "Never"},
    "api.admissionregistration.v1.RuleWithOperations": {"scope": "*"},
    "api.admissionregistration.v1.NamedRuleWithOperations": {"scope": "*"},
    "api.admissionregistration.v1.MatchResources": {
        "matchPolicy": "Equivalent", "namespaceSelector": {}, "objectSelector": {},
    },
    "api.admissionregistration.v1.ServiceReference": {"port": 443},
    "api.admissionregistration.v1.ValidatingAdmissionPolicySpec": {"failurePolicy": "Fail"},
    "apiextensions-apiserver.pkg.apis.apiextensions.v1.CustomResourceDefinitionSpec": {"conversion": {"strategy": "None"}},
}  # fmt: skip
_ZEROS: Final[Mapping[str, Any]] = {"integer": 0, "boolean": False}
_PREFIX: Final = "io.k8s."
_NONE: Final[Mapping[str, Any]] = {}


def apply(obj: Manifest, schema: Schema) -> None:
    """Fills in the defaults of a built-in kind, in place; `obj` must be the caller's own.

    What it changes only ever was missing: applying it twice is the same as once.
    """
    _fill(obj, schema)
    for field, child in obj.items():
        # Metadata has no defaults, and the longest part of it (managedFields) would be walked for nothing.
        if field != "metadata":
            _visit(child, schema.child(field))


def _visit(value: Any, schema: Schema) -> None:
    if isinstance(value, list):
        items = schema.items
        for item in value:
            _visit(item, items)
    elif isinstance(value, dict) and not schema.preserves:
        _fill(value, schema)
        for field, child in value.items():
            if isinstance(child, dict | list):
                _visit(child, schema.child(field))


def _fill(value: dict[str, Any], schema: Schema) -> None:
    name = schema.definition.removeprefix(_PREFIX)
    for field, constant in always_present.fields_of(schema).items():
        if value.get(field) is None:
            value[field] = copied(constant)
    for field in schema.required:
        # What Go cannot leave out is there with its zero; whether that is good enough, validation says.
        if field not in value and (zero := _zero_of(schema.child(field))) is not None:
            value[field] = zero
    for field, constant in _CONSTANTS.get(name, _NONE).items():
        if value.get(field) in (None, ""):
            value[field] = copied(constant)
    if rule := _RULES.get(name):
        rule(value)


def _zero_of(schema: Schema) -> Any:
    return "" if schema.is_plain_text else _ZEROS.get(schema.type)


def _container(container: dict[str, Any]) -> None:
    container.setdefault("imagePullPolicy", _pull_policy(container.get("image", "")))


def _volume(volume: dict[str, Any]) -> None:
    if volume.keys() <= {"name"}:
        volume["emptyDir"] = {}


def _image_volume(source: dict[str, Any]) -> None:
    source.setdefault("pullPolicy", _pull_policy(source.get("reference", "")))


def _pull_policy(image: str) -> str:
    """Always for what may change under the same name: no tag, or `latest`."""
    name = image.rpartition("/")[2]
    tag = name.partition("@")[0].partition(":")[2]
    return "Always" if "@" not in name and tag in ("", "latest") else "IfNotPresent"


def _pod_spec(spec: dict[str, Any]) -> None:
    # The old name of the field goes along with the new one, for old clients.
    account = spec.get("serviceAccountName") or spec.get("serviceAccount")
    if account:
        spec["serviceAccountName"] = spec["serviceAccount"] = account
    if spec.get("hostNetwork"):
        for container in (*spec["containers"], *spec.get("initContainers", ())):
            for port in container.get("ports", ()):
                port.setdefault("hostPort", port.get("containerPort"))


def _pod(pod: dict[str, Any]) -> None:
    spec = pod["spec"]
    spec.setdefault("enableServiceLinks", True)
    for container in (*spec.get("containers", ()), *spec.get("initContainers", ())):
        resources = container.get("resources") or {}
        if limits := resources.get("limits"):
            # Only in pods: a template keeps what its author wrote.
            resources["requests"] = {**limits, **resources.get("requests", {})}


def _rolling(strategy: dict[str, Any]) -> None:
    if strategy["type"] == "RollingUpdate":
        strategy.setdefault("rollingUpdate", {})


def _job_spec(spec: dict[str, Any]) -> None:
    if "parallelism" not in spec:
        spec.setdefault("completions", 1)
        spec["parallelism"] = 1


def _job(job: dict[str, Any]) -> None:
    metadata, spec = job["metadata"], job["spec"]
    template = spec.setdefault("template", {}).setdefault("metadata", {})
    if not spec.get("manualSelector") and not spec.get("selector") and "uid" in metadata:
        # Generated, so that no two jobs ever count each other's pods.
        owner = {"controller-uid": metadata["uid"], "job-name": metadata["name"]}
        generated = {f"{prefix}{key}": value for prefix in ("batch.kubernetes.io/", "") for key, value in owner.items()}
        template["labels"] = {**(template.get("labels") or {}), **generated}
        spec["selector"] = {"matchLabels": {"batch.kubernetes.io/controller-uid": metadata["uid"]}}
    if template.get("labels") and not metadata.get("labels"):
        metadata["labels"] = dict(template["labels"])


def _service(spec: dict[str, Any]) -> None:
    kind = spec["type"]
    if kind == "ExternalName":
        return
    spec.setdefault("internalTrafficPolicy", "Cluster")
    spec.setdefault("ipFamilies", ["IPv4"])
    spec.setdefault("ipFamilyPolicy", "SingleStack")
    if kind in ("NodePort", "LoadBalancer"):
        spec.setdefault("externalTrafficPolicy", "Cluster")
    if kind == "LoadBalancer":
        spec.setdefault("allocateLoadBalancerNodePorts", True)


def _service_port(port: dict[str, Any]) -> None:
    if not port.get("targetPort"):
        port["targetPort"] = port.get("port")


def _subject(subject: dict[str, Any]) -> None:
    if subject.get("kind") in ("User", "Group"):
        subject.setdefault("apiGroup", _RBAC_GROUP)


def _node_spec(spec: dict[str, Any]) -> None:
    if spec.get("podCIDR"):
        spec.setdefault("podCIDRs", [spec["podCIDR"]])


def _pod_status(status: dict[str, Any]) -> None:
    if status.get("podIP"):
        status.setdefault("podIPs", [{"ip": status["podIP"]}])


def _node_status(status: dict[str, Any]) -> None:
    if status.get("capacity"):
        status.setdefault("allocatable", dict(status["capacity"]))


_RULES: Final[Mapping[str, Callable[[dict[str, Any]], None]]] = {
    "api.core.v1.Pod": _pod,
    "api.core.v1.PodSpec": _pod_spec,
    "api.core.v1.Container": _container,
    "api.core.v1.Volume": _volume,
    "api.core.v1.ImageVolumeSource": _image_volume,
    "api.core.v1.ServiceSpec": _service,
    "api.core.v1.ServicePort": _service_port,
    "api.core.v1.NodeSpec": _node_spec,
    "api.core.v1.NodeStatus": _node_status,
    "api.core.v1.PodStatus": _pod_status,
    "api.apps.v1.DaemonSetUpdateStrategy": _rolling,
    "api.apps.v1.DeploymentStrategy": _rolling,
    "api.batch.v1.Job": _job,
    "api.batch.v1.JobSpec": _job_spec,
    "api.rbac.v1.Subject": _subject,
}
