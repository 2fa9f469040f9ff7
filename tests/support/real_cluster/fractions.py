"""A real node that gives out parts of GPUs: the chart with its scheduler and kube-scheduler, and what people do with them."""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from gpushare import names
from gpushare.domain.fractions import Decision, Dialect
from gpushare.domain.shares import ShareId
from support.real_cluster.gpu_node import GPUS, NAMESPACE, NODE, GpuNode
from support.real_cluster.kubectl import until

GPU_UNITS: Final = 15
"""Of each GPU, in GiB."""
KUBE_SCHEDULER: Final = "gpushare-kube-scheduler"
_SLOTS: Final = 10
_SERVICE_IP: Final = "10.96.0.20"
"""Of the extender: nobody tells the addresses of services by their names here."""
_LABELS: Final = (names.LABEL_HAMI_NODE, names.LABEL_ACK_SCHEDULE, names.LABEL_ACK_PLACEMENT)


@contextlib.contextmanager
def installed(node: GpuNode) -> Iterator[FractionNode]:
    """Switches fractions on in the chart of a node, and off again."""
    node.upgrade("--set", f"fractions.enabled=true,fractions.hamiNodeLabel=true,fractions.clusterIP={_SERVICE_IP}")
    fractions = FractionNode(node)
    try:
        yield fractions
    finally:
        node.clear()
        fractions.label({})
        node.upgrade("--set", "fractions.enabled=false")


@dataclass(frozen=True, slots=True)
class FractionNode:
    """The node, and its chart."""

    node: GpuNode

    # What an administrator does.

    def label(self, labels: Mapping[str, str]) -> None:
        """Gives the node these of the labels that say what it gives out, and no other."""
        changes = [f"{label}={labels[label]}" if label in labels else f"{label}-" for label in _LABELS]
        self.node.kubectl("label", "node", NODE, "--overwrite", *changes)

    def serve_slots(self) -> None:
        """Lets the node give out fractions in the words of HAMi."""
        self.label({names.LABEL_HAMI_NODE: "on"})
        self._until_in_force("dialect", Dialect.HAMI)
        self._until_shown({names.RESOURCE_GPU: GPUS * _SLOTS, names.RESOURCE_ALIYUN_MEM: 0})

    def serve_units(self, placement: str) -> None:
        """Lets the node give out units of memory."""
        self.label({names.LABEL_ACK_SCHEDULE: "cgpu", names.LABEL_ACK_PLACEMENT: placement})
        self._until_in_force("placement", placement)
        self._until_in_force("dialect", Dialect.ALIYUN)
        units = GPUS * GPU_UNITS
        self._until_shown({names.RESOURCE_GPU: 0, names.RESOURCE_ALIYUN_MEM: units, names.RESOURCE_ALIYUN_COUNT: GPUS})

    def _until_in_force(self, key: str, value: str) -> None:
        def holds() -> bool:
            mode = self.node.gpu_node()["status"].get("fractions") or {}
            return bool(mode.get(key) == value)

        until(f"{value} is in force", holds)

    def _until_shown(self, wanted: Mapping[str, int]) -> None:
        def holds() -> bool:
            shown = {resource: self.node.shown(resource) for resource in wanted}
            assert shown == {resource: (str(number), str(number)) for resource, number in wanted.items()}, shown
            return True

        until(f"the node shows {wanted}", holds)

    def scale(self, deployment: str, replicas: int) -> None:
        """Returns when no other pods of it are left, and these are ready."""
        self.node.kubectl("scale", "-n", NAMESPACE, f"deployment/{deployment}", f"--replicas={replicas}")
        if not replicas:
            self.node.kubectl(
                "wait", "pods", "-n", NAMESPACE, "-l", f"app={deployment}", "--for=delete", "--timeout=60s"
            )
        self._until_ready(deployment)

    def restart(self, *deployments: str) -> None:
        """Deletes the pods of Deployments, and returns when the next ones are ready."""
        for name in deployments:
            self.node.kubectl("delete", "pods", "-n", NAMESPACE, "-l", f"app={name}")
        for name in deployments:
            self._until_ready(name)

    def _until_ready(self, deployment: str) -> None:
        self.node.kubectl("rollout", "status", "-n", NAMESPACE, f"deployment/{deployment}", "--timeout=60s")

    # What people do, and see.

    def decision_of(self, pod: str) -> Decision:
        """What the scheduler gave a pod."""
        annotations = self.node.kubectl.get("pod", pod)["metadata"]["annotations"]
        return Decision.from_annotation(annotations[names.ANNOTATION_DECISION])

    def check_held(self, *pods: str) -> None:
        """Holds the ids that the kubelet gave to pods of one container against what was decided for them."""
        holders = self.node.holders()
        for pod in pods:
            [grants] = self.decision_of(pod).containers.values()
            held = Counter(ShareId.parse(id_).device for id_ in holders[pod].ids)
            assert held == {grant.uuid: grant.units or 1 for grant in grants}, pod

    def inspect(self) -> list[str]:
        """What Alibaba's table says of the node: the GPUs one by one, then the whole."""
        lines = self.node.kubectl("inspect", "cgpu").splitlines()
        [row] = [line.split() for line in lines if line.startswith(NODE)]
        return row[2:]

    def events_of(self, name: str) -> str:
        """The texts of all Events on an object."""
        found = self.node.kubectl.items("events", f"--field-selector=involvedObject.name={name}")
        return "\n".join(f"{event['reason']}: {event['message']}" for event in found)
