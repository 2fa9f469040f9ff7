"""GPUNode as a plain value: the one meeting place of controller and agent. Both sides read and write it only through here.

`spec` belongs to the controller, `status` to the agent; `status.conditions` is a map by type in which the controller owns
`ConfigAssigned` and `AgentReady`, and `CapacityShown` and `Discovered` where there is something to say.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Final

from gpushare.domain import manifests
from gpushare.domain.conditions import Condition
from gpushare.domain.fractions import FractionMode
from gpushare.domain.manifests import Manifest
from gpushare.errors import Problem

CONFIG_ASSIGNED = "ConfigAssigned"
"""Condition of the controller: whether the node's label or the policy's default names a usable configuration."""
AGENT_READY = "AgentReady"
"""Condition of the controller: whether the agent's pod is ready, and with it whether the rest of the status is up to date."""
DISCOVERED = "Discovered"
"""Condition of the controller, only where it is False: since when labels do not say any more that the node has GPUs."""
CAPACITY_SHOWN = "CapacityShown"
"""Condition of the controller, there only while it is wrong: whether the Node shows what the agent offers."""
CONFIG_APPLIED = "ConfigApplied"
"""Condition of the agent: whether the revision in `spec` is the one in force."""
DEVICES_READY = "DevicesReady"
"""Condition of the agent: whether the driver answers and every GPU can be read."""
REGISTERED = "Registered"
"""Condition of the agent: whether the kubelet knows every resource of the node."""
ANOTHER_PLUGIN = "AnotherPlugin"
"""Reason of `Registered`, where another device plugin serves a resource of ours."""
MPS_READY = "MpsReady"
"""Condition of the agent, where resources are shared by MPS: whether the daemon of each runs, so that its shares are offered."""
_NO_CONFIG: Final = "none"
"""What the name of a configuration says where there is none."""


class ConfigReason(StrEnum):
    """Why a node has the configuration that it has."""

    LABEL = "label"
    ACK = "ack"
    """A label of Alibaba's container service on the node: `ack.node.gpu.schedule`."""
    HAMI = "hami"
    """HAMi's label on the node: `gpu=on`."""
    DEFAULT = "default"
    NONE = "none"


def revision_of(content: str) -> str:
    """The revision of a configuration text: 12 hex digits of the sha256 of its bytes; empty for no configuration."""
    return hashlib.sha256(content.encode()).hexdigest()[:12] if content else ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfigSource:
    """Where a configuration text came from."""

    namespace: str
    name: str
    key: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Config:
    """The configuration that a node should run."""

    reason: ConfigReason = ConfigReason.NONE
    source: ConfigSource | None = None
    """None: not shared, on purpose, or made from a label that says it all."""
    title: str = ""
    """That label with its value; empty where the text has a source, or there is none."""
    content: str = ""
    """The effective text, byte for byte; empty means the defaults."""
    mig_strategy: str = ""
    """The policy's `mig.strategy`, which beats that of the text; empty: the text decides."""

    @property
    def revision(self) -> str:
        """Changes exactly when the text does; that of the defaults is empty."""
        return revision_of(self.content)

    @property
    def name(self) -> str:
        """For people: the key that the text came from, the label that it was made from, or `none`."""
        return self.source.key if self.source is not None else self.title or _NO_CONFIG

    @property
    def is_named(self) -> bool:
        """Whether somebody said what the node should run."""
        return self.source is not None or bool(self.title)

    def to_json(self) -> dict[str, Any]:
        """The form of `spec.config`."""
        body: dict[str, Any] = {
            "name": self.name,
            "reason": self.reason.value,
            "revision": self.revision,
            "content": self.content,
        }
        if self.source is not None:
            body["source"] = {
                "namespace": self.source.namespace,
                "name": self.source.name,
                "key": self.source.key,
            }
        if self.mig_strategy:
            body["migStrategy"] = self.mig_strategy
        return body

    @classmethod
    def from_json(cls, body: Mapping[str, Any]) -> Config:
        """Reads `spec.config`; missing fields become empty."""
        source = body.get("source")
        return cls(
            reason=ConfigReason(body.get("reason", "none")),
            source=ConfigSource(namespace=source["namespace"], name=source["name"], key=source["key"])
            if source
            else None,
            title="" if source or body.get("name") == _NO_CONFIG else body.get("name", ""),
            content=body.get("content", ""),
            mig_strategy=body.get("migStrategy", ""),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class ResourceStatus:
    """One resource as the agent offers it to the kubelet."""

    name: str
    strategy: str
    replicas: int
    total: int
    """Shares offered, healthy or not."""
    healthy: int
    allocated: int = 0

    def to_json(self) -> dict[str, Any]:
        """The form of one item of `status.resources`."""
        return {
            "name": self.name,
            "strategy": self.strategy,
            "replicas": self.replicas,
            "total": self.total,
            "healthy": self.healthy,
            "allocated": self.allocated,
        }

    @classmethod
    def from_json(cls, body: Mapping[str, Any]) -> ResourceStatus:
        """Reads one item of `status.resources`."""
        return cls(
            name=body.get("name", ""),
            strategy=body.get("strategy", "none"),
            replicas=body.get("replicas", 1),
            total=body.get("total", 0),
            healthy=body.get("healthy", 0),
            allocated=body.get("allocated", 0),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Summary:
    """Figures for `kubectl get gpunodes`, which can show a field but not count."""

    gpus: int = 0
    shares: int = 0
    """Shares of all resources together, healthy or not."""
    healthy: int = 0

    def to_json(self) -> dict[str, Any]:
        """The form of `status.summary`."""
        return {"gpus": self.gpus, "shares": self.shares, "healthy": self.healthy}


@dataclass(frozen=True, slots=True, kw_only=True)
class ContainerAllocation:
    """Shares of one GPU that one container holds."""

    gpu_index: int
    namespace: str
    pod: str
    container: str
    resource: str
    shares: tuple[int, ...] = ()
    """Share numbers in ascending order; empty where the device is not shared."""
    pod_uid: str = ""
    """Told where fractions are served: the scheduler takes a pod for confirmed by it."""
    memory_mib: int = 0
    """What the container may use of the GPU's memory; 0: not limited."""
    cores: int = 0
    """Percent of the GPU's compute; 0: not limited."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GPUNodeStatus:
    """What the agent tells about its node. The controller reads of it: revision, problems, resources, labels, conditions."""

    applied_revision: str | None = None
    """None: nothing was applied yet; empty: the defaults are in force."""
    problems: tuple[Problem, ...] = ()
    driver_version: str = ""
    cuda_version: str = ""
    devices: tuple[Mapping[str, Any], ...] = ()
    """In the form of the API; built by `agent.reporting` from the inventory."""
    resources: tuple[ResourceStatus, ...] = ()
    fractions: FractionMode | None = None
    """How fractions are served by what is in force; None: they are not."""
    labels: Mapping[str, str] = field(default_factory=dict)
    allocations: tuple[ContainerAllocation, ...] = ()
    conditions: tuple[Condition, ...] = ()

    @classmethod
    def from_json(cls, body: Mapping[str, Any]) -> GPUNodeStatus:
        """Reads `status` as far as anybody but the agent needs it; `devices` and `allocations` come along as they are."""
        return cls(
            applied_revision=body.get("appliedRevision"),
            problems=tuple(
                Problem(path=problem.get("path", ""), message=problem.get("message", ""))
                for problem in body.get("problems", ())
            ),
            driver_version=body.get("driverVersion", ""),
            cuda_version=body.get("cudaVersion", ""),
            devices=tuple(body.get("devices", ())),
            resources=tuple(map(ResourceStatus.from_json, body.get("resources", ()))),
            fractions=FractionMode.from_json(body["fractions"]) if body.get("fractions") else None,
            labels=dict(body.get("labels", {})),
            allocations=tuple(
                ContainerAllocation(
                    gpu_index=gpu["index"],
                    namespace=holder["namespace"],
                    pod=holder["pod"],
                    container=holder["container"],
                    resource=holder["resource"],
                    shares=tuple(holder.get("shares", ())),
                    pod_uid=holder.get("podUID", ""),
                    memory_mib=holder.get("memoryMiB", 0),
                    cores=holder.get("cores", 0),
                )
                for gpu in body.get("allocations", ())
                for holder in gpu.get("containers", ())
            ),
            conditions=tuple(map(Condition.from_json, body.get("conditions", ()))),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class GPUNode:
    """One GPUNode, named after its Node."""

    name: str
    uid: str = ""
    node_uid: str = ""
    """Uid of the Node that owns it."""
    config: Config | None = None
    """None: the controller has not assigned anything yet."""
    status: GPUNodeStatus = GPUNodeStatus()
    generation: int = 0
    resource_version: str = ""

    @classmethod
    def from_json(cls, body: Mapping[str, Any]) -> GPUNode:
        """Reads the object of the API."""
        metadata = body.get("metadata", {})
        config = (body.get("spec") or {}).get("config")
        owners = metadata.get("ownerReferences", ())
        return cls(
            name=metadata.get("name", ""),
            uid=metadata.get("uid", ""),
            node_uid=next((owner["uid"] for owner in owners if owner.get("kind") == "Node"), ""),
            config=Config.from_json(config) if config is not None else None,
            status=GPUNodeStatus.from_json(body.get("status") or {}),
            generation=metadata.get("generation", 0),
            resource_version=metadata.get("resourceVersion", ""),
        )


def assignment_manifest(name: str, node_uid: str, config: Config) -> Manifest:
    """What the controller applies to give a node its configuration. The Node owns it, so that it goes with the Node."""
    kind = manifests.GPU_NODE
    return {
        "apiVersion": kind.api_version,
        "kind": kind.kind,
        "metadata": {
            "name": name,
            "ownerReferences": [
                {"apiVersion": manifests.NODE.api_version, "kind": manifests.NODE.kind, "name": name, "uid": node_uid}
            ],
        },
        "spec": {"config": config.to_json()},
    }


def conditions_manifest(name: str, conditions: Iterable[Condition]) -> Manifest:
    """What one writer applies to the status of a GPUNode to set all conditions of its own; the others' stay as they are."""
    kind = manifests.GPU_NODE
    return {
        "apiVersion": kind.api_version,
        "kind": kind.kind,
        "metadata": {"name": name},
        "status": {"conditions": [condition.to_json() for condition in conditions]},
    }
