"""Every name that other software knows too: labels, annotations, resources, kinds, fixed object names.

Spelled only here; a test looks for strays. Sources: NVIDIA's ClusterPolicy, device plugin and GPU feature discovery.
"""

from __future__ import annotations

from typing import Final

GROUP_NVIDIA: Final = "nvidia.com"
PREFIX: Final = "nvidia.com/"
"""Stands before every resource name and label of NVIDIA's ecosystem."""

# Labels that people and node feature discovery write.
LABEL_CONFIG: Final = "nvidia.com/device-plugin.config"
LABEL_PRESENT: Final = "nvidia.com/gpu.present"
LABEL_WORKLOAD_CONFIG: Final = "nvidia.com/gpu.workload.config"
LABEL_DEPLOY_PREFIX: Final = "nvidia.com/gpu.deploy."
LABEL_DEPLOY_OPERANDS: Final = "nvidia.com/gpu.deploy.operands"
LABEL_DEPLOY_DEVICE_PLUGIN: Final = "nvidia.com/gpu.deploy.device-plugin"
LABELS_NFD_GPU: Final = (
    "feature.node.kubernetes.io/pci-10de.present",
    "feature.node.kubernetes.io/pci-0302_10de.present",
    "feature.node.kubernetes.io/pci-0300_10de.present",
)
"""Any one of them with the value `true` says that the node has an NVIDIA device."""
ANNOTATION_NFD_LABELS: Final = "nfd.node.kubernetes.io/feature-labels"
"""How the key of the annotation ends in which node feature discovery lists the labels that it maintains."""
PREFIX_NFD: Final = "feature.node.kubernetes.io/"
LABEL_NFD_NODE: Final = "nfd.node.kubernetes.io/node-name"
"""On a NodeFeature object: the node that it is about."""

LABELS_POD_SECURITY: Final = (
    "pod-security.kubernetes.io/enforce",
    "pod-security.kubernetes.io/audit",
    "pod-security.kubernetes.io/warn",
)
"""On a namespace: which pods are let in, and which are told of."""

# Fact labels (spec: GPU feature discovery).
LABEL_MIG_CAPABLE: Final = "nvidia.com/mig.capable"
LABEL_MIG_STRATEGY: Final = "nvidia.com/mig.strategy"
LABEL_MIG_CONFIG: Final = "nvidia.com/mig.config"
LABEL_MIG_STATE: Final = "nvidia.com/mig.config.state"
LABEL_MPS_CAPABLE: Final = "nvidia.com/mps.capable"
LABEL_TIMESTAMP: Final = "nvidia.com/gfd.timestamp"
LABEL_PRODUCT: Final = "nvidia.com/gpu.product"
LABEL_GPU_COUNT: Final = "nvidia.com/gpu.count"
LABEL_GPU_MEMORY: Final = "nvidia.com/gpu.memory"
"""MiB of one GPU."""
SUFFIX_SHARED: Final = "-SHARED"

# Resources.
RESOURCE_GPU: Final = "nvidia.com/gpu"
RESOURCE_MIG_PREFIX: Final = "nvidia.com/mig-"
SUFFIX_RENAMED: Final = ".shared"

# Fractions. Source: HAMi and Alibaba's GPU sharing.
RESOURCE_GPUMEM: Final = "nvidia.com/gpumem"
"""MiB of each GPU that a container asks for."""
RESOURCE_GPUMEM_PERCENTAGE: Final = "nvidia.com/gpumem-percentage"
RESOURCE_GPUCORES: Final = "nvidia.com/gpucores"
"""Percent of the compute of each GPU."""
RESOURCE_PRIORITY: Final = "nvidia.com/priority"
PREFIX_ALIYUN: Final = "aliyun.com/"
RESOURCE_ALIYUN_MEM: Final = "aliyun.com/gpu-mem"
"""Units of memory, GiB unless the node's configuration says otherwise."""
RESOURCE_ALIYUN_CORE: Final = "aliyun.com/gpu-core.percentage"
RESOURCE_ALIYUN_COUNT: Final = "aliyun.com/gpu-count"
"""On a node: its GPUs. As a label of a pod: over how many GPUs its memory is spread."""
ANNOTATION_USE_TYPE: Final = "nvidia.com/use-gputype"
ANNOTATION_AVOID_TYPE: Final = "nvidia.com/nouse-gputype"
ANNOTATION_USE_UUID: Final = "nvidia.com/use-gpuuuid"
ANNOTATION_AVOID_UUID: Final = "nvidia.com/nouse-gpuuuid"
ANNOTATION_NUMA_BIND: Final = "nvidia.com/numa-bind"
ANNOTATION_TIER: Final = "nvidia.com/vgpu-mode"
"""By what a pod wants to be held to its fraction."""
ANNOTATION_NODE_POLICY: Final = "hami.io/node-scheduler-policy"
ANNOTATION_GPU_POLICY: Final = "hami.io/gpu-scheduler-policy"
ANNOTATION_WEIGHTS: Final = "hami.io/device-scoring-weights"
ANNOTATION_CORDON: Final = "hami.io/device-cordon"
"""On a node: UUIDs of GPUs that get no more pods."""
LABEL_ACK_SCHEDULE: Final = "ack.node.gpu.schedule"
LABEL_ACK_PLACEMENT: Final = "ack.node.gpu.placement"
LABEL_DISABLE_ISOLATION: Final = "cgpu.disable.isolation"
"""`true` on a node: parts of its GPUs are only counted."""
LABEL_HAMI_NODE: Final = "gpu"
"""`on`: a node that HAMi serves."""
TAINT_FRACTIONS: Final = "gpushare.dev/fractions"
"""On nodes in the dialect of HAMi, so that pods that ask for whole GPUs keep away."""
ANNOTATION_DECISION: Final = "gpushare.dev/decision"
"""On a pod: what the scheduler gave it, as `domain.fractions.Decision` writes it."""
SCHEDULER: Final = "gpushare-scheduler"
"""Deployment, service account, and the name of the scheduler that pods with fractions are given to."""

# What the scheduler writes into the annotations of pods besides, for tools of HAMi and Alibaba.
ANNOTATION_HAMI_NODE: Final = "hami.io/vgpu-node"
ANNOTATION_HAMI_TIME: Final = "hami.io/vgpu-time"
ANNOTATION_HAMI_DEVICES: Final = "hami.io/vgpu-devices-allocated"
ANNOTATION_ALIYUN_INDEX: Final = "ALIYUN_COM_GPU_MEM_IDX"
ANNOTATION_ALIYUN_POD: Final = "ALIYUN_COM_GPU_MEM_POD"
ANNOTATION_ALIYUN_DEV: Final = "ALIYUN_COM_GPU_MEM_DEV"
ANNOTATION_ALIYUN_ASSIGNED: Final = "ALIYUN_COM_GPU_MEM_ASSIGNED"
ANNOTATION_ALIYUN_TIME: Final = "ALIYUN_COM_GPU_MEM_ASSUME_TIME"
ANNOTATION_ALIYUN_ALLOCATION: Final = "scheduler.framework.gpushare.allocation"

# Objects with fixed names: the same as upstream's, so that one can take the other's place.
DAEMONSET_DEVICE_PLUGIN: Final = "nvidia-device-plugin-daemonset"
SERVICE_ACCOUNT_DEVICE_PLUGIN: Final = "nvidia-device-plugin"
CLUSTER_ROLE_AGENT: Final = "gpu-sharing-operator-agent"
"""Of the agent, and its binding. No name of upstream's: beside us, NVIDIA's operator deletes what has those, in every pass."""
CLUSTER_ROLE_FRACTIONS: Final = "gpu-sharing-operator-agent-fractions"
"""What agents may do besides where a node gives out fractions, and its binding."""
SERVICE_DEVICE_PLUGIN: Final = "nvidia-device-plugin"
"""Where Prometheus finds the agents; that of the MPS daemons has the name of their DaemonSet."""
DAEMONSET_MPS: Final = "nvidia-device-plugin-mps-control-daemon"
RUNTIME_CLASSES_CDI: Final = ("nvidia-legacy", "nvidia-cdi")
"""Besides the one that the policy names, where containers get their GPUs by CDI."""
CONTROLLER: Final = "gpu-sharing-operator"
"""Deployment and service account of the controller."""
CONFIG_WEBHOOK: Final = "gpu-sharing-operator-configs"
"""Service, Secret and ValidatingWebhookConfiguration of what judges sharing configurations."""
IMAGE: Final = "gpu-sharing-operator"
"""Repository name of the one image, whatever registry it comes from."""

PORT_AGENT: Final = 9409
"""Where the agent serves metrics and health, unless the policy's `METRICS_PORT` says otherwise."""
PORT_MPS: Final = 9410
"""The same of `gpushare mps`; another one, since both may share the host's network."""
PORT_SCHEDULER: Final = 9443
"""Where the scheduler serves its extender and its webhook."""

# Field managers, one a writer.
MANAGER_CONTROLLER: Final = "gpushare-controller"
MANAGER_NVIDIA_OPERATOR: Final = "gpu-operator"
"""What NVIDIA's operator calls itself where it writes."""
MANAGER_AGENT: Final = "gpushare-agent"
MANAGER_SCHEDULER: Final = "gpushare-scheduler"

# Own annotations and labels on objects that we create.
ANNOTATION_HASH: Final = "gpushare.dev/template-hash"
ANNOTATION_OPTED_OUT: Final = "gpushare.dev/opted-out"
"""On a Node: components that a person keeps away from it, for when somebody else removes the labels that say so."""
LABEL_CERTIFICATE: Final = "gpushare.dev/certificate"
"""On a Secret: the program of ours that keeps its certificate in it. (Helm puts its own name into `managed-by`.)"""
LABEL_SHARING_CONFIG: Final = "gpushare.dev/sharing-config"
"""`true` on a ConfigMap whose keys are sharing configurations, whether or not a policy names it yet."""
LABEL_SIMULATED: Final = "gpushare.dev/simulated"
"""`true` on nodes that a sandbox has put into a real cluster."""
LABEL_COMPONENT: Final = "app.kubernetes.io/component"
LABEL_MANAGED_BY: Final = "app.kubernetes.io/managed-by"
KOPF_PREFIX: Final = "gpushare.dev"
LEASE: Final = "gpushare-controller"
LEASE_NVIDIA_OPERATOR: Final = "53822513.nvidia.com"
"""Held and renewed by NVIDIA's operator as long as it works."""
LEASE_SCHEDULER: Final = "gpushare-scheduler"
SECRET_SCHEDULER: Final = "gpushare-scheduler-tls"  # noqa: S105 - the name of a Secret

# Environment of the processes.
ENV_NODE_NAME: Final = "NODE_NAME"
ENV_NAMESPACE: Final = "OPERATOR_NAMESPACE"
ENV_DEVICE_PLUGIN_IMAGE: Final = "DEVICE_PLUGIN_IMAGE"
ENV_POD_NAME: Final = "POD_NAME"
ENV_POD_IP: Final = "POD_IP"
ENV_CANARY: Final = "ROLLOUT_CANARY"
ENV_STOP_ON_REFUSAL: Final = "ROLLOUT_STOP_ON_REFUSAL"
ENV_METRICS_PORT: Final = "METRICS_PORT"
