"""What the controller saw, as slim values. Filled by `controller` from watches (`plan.reading`), read by every module here.

Slim: of a Node only the labels that count, of a GPUNode nothing that changes with every pod. Two values are equal exactly
when no decision can differ between them, so whoever keeps a snapshot can drop an event that changes nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from gpushare.domain.conditions import Condition
from gpushare.domain.gpunode import GPUNode
from gpushare.domain.manifests import ObjectKey
from gpushare.domain.selectors import Selector


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """What the controller's command line and environment say."""

    namespace: str
    """The operator's own: its ConfigMaps, DaemonSets and events of the policy's configurations are here."""
    image: str = ""
    """This project's image, `DEVICE_PLUGIN_IMAGE` of the Deployment; components run it unless the policy names another build."""
    policy: str = ""
    """Name of the one policy to follow (`--policy`); empty: the oldest."""
    canary: Selector | None = None
    """Labels of nodes that get what is new before the others (`--canary`); None: all at once."""
    stop_on_refusal: bool = False
    """Whether what is new is given in steps, and no further once a node refuses it (`--stop-on-refusal`)."""
    hami_nodes: bool = False
    """Whether HAMi's label `gpu=on` makes a node give out fractions (`--hami-node-label`)."""
    hami_keys: Mapping[str, Any] = field(default_factory=dict)
    """What else the `gpushare` block of such nodes says, as its keys and values (`--hami-node-settings`)."""
    isolation: str = "none"
    """What isolates fractions on nodes whose labels ask for fractions and not for a tier (`--fractions-isolation`)."""
    discovery_grace_seconds: float = 600.0
    """How long a node keeps everything after node feature discovery has stopped to say that it has GPUs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """One ClusterPolicy as it is stored. What its spec means is read by `api.clusterpolicy`."""

    name: str
    uid: str = ""
    generation: int = 0
    created: str = ""
    """RFC 3339; orders policies."""
    deleting: bool = False
    spec: Mapping[str, Any] | None = None
    state: str = ""
    namespace: str = ""
    """`status.namespace`."""
    conditions: tuple[Condition, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfigMap:
    """One ConfigMap of the operator's namespace."""

    name: str
    uid: str = ""
    data: Mapping[str, str] = field(default_factory=dict)
    binary: frozenset[str] = frozenset()
    """Keys of `binaryData`: where kubectl puts a file that is no UTF-8."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """One Node: its labels, and which of them are ours."""

    name: str
    uid: str = ""
    labels: Mapping[str, str] = field(default_factory=dict)
    """Those under `nvidia.com/`, and those by which node feature discovery tells of a GPU."""
    owned: frozenset[str] = frozenset()
    """Keys that our own field manager applied."""
    writers: Mapping[str, str] = field(default_factory=dict)
    """Who else wrote which of them, by field manager."""
    maintained: frozenset[str] = frozenset()
    """Those that node feature discovery says to maintain: it writes them again whatever we do."""
    opted_out: frozenset[str] = frozenset()
    """Components that we remember as opted out, in an annotation of ours."""
    resources: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    """Capacity and allocatable of what device plugins offer, as the kubelet wrote them."""
    canary: bool = False
    """Whether it gets what is new before the others (`Settings.canary`)."""
    runtime: str = ""
    """What runs its containers: `containerd`, `cri-o`."""
    tainted: bool = False
    """Whether it has the taint that keeps plain pods from fractions."""
    discovered: bool = False
    """Whether node feature discovery labelled it at all, with or without a GPU."""
    resource_version: str = field(default="", compare=False)
    """Not compared: heartbeats change it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rollout:
    """How far a DaemonSet is."""

    generation: int = 0
    observed: int = 0
    """The generation that the numbers below are about."""
    desired: int = 0
    updated: int = 0
    available: int = 0
    unavailable: int = 0
    on_delete: bool = False
    """Pods become new only as somebody deletes the old ones."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LiveObject:
    """An object that has the name of one of ours, or carries our label."""

    key: ObjectKey
    uid: str = ""
    managed: bool = False
    """Carries our `managed-by` label."""
    component: str = ""
    controller: str = ""
    """Uid of the owner that controls it; empty: nobody does."""
    controller_name: str = ""
    """Kind and name of that owner, for people."""
    rollout: Rollout | None = None
    """None for everything that is no DaemonSet."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentPod:
    """The agent's pod on one node: the agent is alive as its pod is ready."""

    node: str
    name: str = ""
    ready: bool = False
    trouble: str = ""
    """Why it is not ready, in the kubelet's word: `CrashLoopBackOff`. Empty: it is only starting."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """The cluster as far as the plan needs it. The order inside the tuples means nothing."""

    settings: Settings
    policies: tuple[Policy, ...] = ()
    config_maps: tuple[ConfigMap, ...] = ()
    """Those of the operator's namespace."""
    config_maps_elsewhere: tuple[ObjectKey, ...] = ()
    """Where else a ConfigMap has the name that `policies.missing_config_map` gave: people create it in `default`."""
    nodes: tuple[Node, ...] = ()
    gpu_nodes: tuple[GPUNode, ...] = ()
    objects: tuple[LiveObject, ...] = ()
    agent_pods: tuple[AgentPod, ...] = ()
    lost_labels: Mapping[str, frozenset[str]] = field(default_factory=dict)
    """Labels that somebody else took from us again and again, by uid of the Node."""
    lost_objects: frozenset[ObjectKey] = frozenset()
    """Objects that somebody else rewrote or deleted again and again."""
    nvidia_operators: frozenset[str] = frozenset()
    """Namespaces in which NVIDIA's operator is at work."""
    unshown: Mapping[str, str] = field(default_factory=dict)
    """Nodes that do not show what their agents offer: since when, by name. What the last plan left standing."""
    gpu_clusters: tuple[str, ...] = ()
    """Names of GPUClusters: where one exists, another operator is in charge."""
    runtime_classes: frozenset[str] = frozenset()
    """Names of those that somebody else has made."""
    pod_security: Mapping[str, str] = field(default_factory=dict)
    """Labels of the operator's namespace that are ours, and their values."""
    service_monitors: bool = False
    """Whether there is the kind by which Prometheus is told what to read."""
    failures: Mapping[str, str] = field(default_factory=dict)
    """Why the last try to write a component or a part of the nodes failed, in the API server's words; by its name."""
    missing_rights: str = ""
    """Rights that the controller lacks, for people; empty when it lacks none."""
