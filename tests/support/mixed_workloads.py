"""Workloads that ask for parts of GPUs in eight ways, in both dialects, each kept at its number by an owner."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from gpushare import names
from gpushare.domain.manifests import Manifest
from support.placements import aliyun, hami


@dataclass(frozen=True, kw_only=True)
class Workload:
    """Pods of one shape, and who replaces those that are lost."""

    name: str
    kind: str
    """Deployment or ReplicaSet: a Job pauses for longer and longer after pods that failed."""
    count: int
    containers: tuple[Mapping[str, Any], ...]
    init: tuple[Mapping[str, Any], ...] = ()
    labels: Mapping[str, str] = field(default_factory=dict)
    nodes: Mapping[str, str] = field(default_factory=dict)
    """Labels of the nodes where they may run."""

    def build(self) -> Manifest:
        """The owner."""
        labels = {"app": self.name, **self.labels}
        template = {"metadata": {"labels": labels}, "spec": self._pod()}
        return {
            "apiVersion": "apps/v1",
            "kind": self.kind,
            "metadata": {"name": self.name, "namespace": "default"},
            "spec": {"replicas": self.count, "selector": {"matchLabels": {"app": self.name}}, "template": template},
        }

    def _pod(self) -> dict[str, Any]:
        return {
            "containers": [{**container, "image": "cuda"} for container in self.containers],
            "nodeSelector": dict(self.nodes),
            "initContainers": [{**container, "image": "cuda"} for container in self.init],
        }


WORKLOADS = (
    Workload(name="alone", kind="Deployment", count=40, containers=(hami(gpus=1, mem=1200, cores=10),)),
    Workload(
        name="percent",
        kind="ReplicaSet",
        count=32,
        init=(hami("init", gpus=1, mem=2000, cores=10),),
        containers=(hami(percent=10, cores=5),),
    ),
    Workload(name="pair", kind="Deployment", count=20, containers=(hami(gpus=2, mem=900, cores=5),)),
    Workload(
        name="two",
        kind="Deployment",
        count=12,
        containers=(hami("one", gpus=1, mem=600, cores=5), hami("two", gpus=1, mem=1100)),
    ),
    # Pods with and without a part of the compute do not go together on a node.
    Workload(
        name="units",
        kind="Deployment",
        count=26,
        init=(aliyun("init", 1),),
        containers=(aliyun(units=2),),
        nodes={names.LABEL_ACK_SCHEDULE: "cgpu"},
    ),
    Workload(
        name="spread",
        kind="ReplicaSet",
        count=24,
        containers=(aliyun(units=2),),
        labels={names.RESOURCE_ALIYUN_COUNT: "2"},
        nodes={names.LABEL_ACK_SCHEDULE: "cgpu"},
    ),
    Workload(name="compute", kind="Deployment", count=30, containers=(aliyun(units=1, cores=10),)),
    Workload(
        name="both", kind="Deployment", count=16, containers=(aliyun("one", 1, cores=5), aliyun("two", 2, cores=10))
    ),
)
"""Two hundred pods, for four nodes of eight GPUs with 15 GiB: two in HAMi's dialect, one in Alibaba's without compute and one
with it. As much as fits in whichever order they come: what is free of one GPU alone is never enough to keep a pod waiting."""
