"""Fields that Go writes even when nobody set them: structs that are no pointers, numbers and texts without `omitempty`.

Data only. Looked up by `defaults`, since clients read these fields, and by `ownership`, for which a field that is always
there is never new.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from gpushare.sandbox.apiserver.objects.schemas import Schema

_NODE_INFO: Final = dict.fromkeys(
    (
        "architecture", "bootID", "containerRuntimeVersion", "kernelVersion", "kubeProxyVersion", "kubeletVersion",
        "machineID", "operatingSystem", "osImage", "systemUUID",
    ),
    "",
)  # fmt: skip
_COUNTS: Final = dict.fromkeys(
    ("currentNumberScheduled", "desiredNumberScheduled", "numberMisscheduled", "numberReady"), 0
)
_BUDGET: Final = dict.fromkeys(("currentHealthy", "desiredHealthy", "disruptionsAllowed", "expectedPods"), 0)
_SPEC_AND_STATUS: Final[Mapping[str, Any]] = {"spec": {}, "status": {}}

_FIELDS: Final[Mapping[str, Mapping[str, Any]]] = {
    "apimachinery.pkg.apis.meta.v1.Condition": {"lastTransitionTime": None},
    "api.core.v1.Namespace": _SPEC_AND_STATUS,
    "api.core.v1.Node": _SPEC_AND_STATUS,
    "api.core.v1.NodeStatus": {"daemonEndpoints": {}, "nodeInfo": {}},
    "api.core.v1.NodeDaemonEndpoints": {"kubeletEndpoint": {}},
    "api.core.v1.DaemonEndpoint": {"Port": 0},
    "api.core.v1.NodeSystemInfo": _NODE_INFO,
    "api.core.v1.Pod": _SPEC_AND_STATUS,
    "api.core.v1.PodSpec": {"containers": []},
    "api.core.v1.PodTemplateSpec": {"metadata": {}, "spec": {}},
    "api.core.v1.Container": {"resources": {}},
    "api.core.v1.EphemeralContainer": {"resources": {}},
    "api.core.v1.ContainerStatus": {
        "image": "", "imageID": "", "lastState": {}, "ready": False, "restartCount": 0, "state": {},
    },
    "api.core.v1.ContainerStateRunning": {"startedAt": None},
    "api.core.v1.ContainerStateTerminated": {"exitCode": 0, "startedAt": None, "finishedAt": None},
    "api.core.v1.PodCondition": {"lastProbeTime": None, "lastTransitionTime": None},
    "api.core.v1.NodeCondition": {"lastHeartbeatTime": None, "lastTransitionTime": None},
    "api.core.v1.Service": _SPEC_AND_STATUS,
    "api.core.v1.ServiceStatus": {"loadBalancer": {}},
    "api.core.v1.ServicePort": {"targetPort": 0},
    "api.core.v1.Event": {
        "involvedObject": {}, "source": {}, "reportingComponent": "", "reportingInstance": "", "eventTime": None,
        "firstTimestamp": None, "lastTimestamp": None,
    },
    "api.apps.v1.DaemonSet": _SPEC_AND_STATUS,
    "api.apps.v1.DaemonSetSpec": {"template": {}, "updateStrategy": {}},
    "api.apps.v1.DaemonSetStatus": _COUNTS,
    "api.apps.v1.Deployment": _SPEC_AND_STATUS,
    "api.apps.v1.DeploymentSpec": {"template": {}, "strategy": {}},
    "api.apps.v1.DeploymentCondition": {"lastUpdateTime": None, "lastTransitionTime": None},
    "api.apps.v1.DaemonSetCondition": {"lastTransitionTime": None},
    "api.apps.v1.ReplicaSetCondition": {"lastTransitionTime": None},
    "api.apps.v1.ReplicaSet": _SPEC_AND_STATUS,
    "api.apps.v1.ReplicaSetSpec": {"template": {}},
    "api.apps.v1.ReplicaSetStatus": {"replicas": 0},
    "api.batch.v1.Job": _SPEC_AND_STATUS,
    "api.batch.v1.JobSpec": {"template": {}},
    "api.batch.v1.JobCondition": {"lastProbeTime": None, "lastTransitionTime": None},
    "api.rbac.v1.Role": {"rules": None},
    "api.rbac.v1.ClusterRole": {"rules": None},
    "api.coordination.v1.Lease": {"spec": {}},
    "api.policy.v1.PodDisruptionBudget": _SPEC_AND_STATUS,
    "api.policy.v1.PodDisruptionBudgetStatus": _BUDGET,
    "api.admissionregistration.v1.ValidatingAdmissionPolicy": _SPEC_AND_STATUS,
    "api.admissionregistration.v1.ValidatingAdmissionPolicyBinding": {"spec": {}},
    "apiextensions-apiserver.pkg.apis.apiextensions.v1.CustomResourceDefinition": _SPEC_AND_STATUS,
}  # fmt: skip
_PREFIX: Final = "io.k8s."
_NONE: Final[Mapping[str, Any]] = {}


def fields_of(schema: Schema) -> Mapping[str, Any]:
    """The fields that every value of this schema has, with what they are while nobody set them."""
    return _FIELDS.get(schema.definition.removeprefix(_PREFIX), _NONE)
