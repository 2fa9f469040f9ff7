"""A pod of the node as far as fractions are concerned. Pure; read from what the API server tells."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from gpushare import names
from gpushare.domain.amounts import count_of
from gpushare.domain.fractions import Decision, Dialect, Grant
from gpushare.domain.manifests import Manifest
from gpushare.sharing.fractions import REQUESTED

_ENDED: Final = frozenset({"Succeeded", "Failed"})


@dataclass(frozen=True, slots=True, kw_only=True)
class BoundPod:
    """A pod of this node that asks for fractions, or was given one."""

    uid: str
    namespace: str
    name: str
    version: int = 0
    asks: Mapping[str, int] = field(default_factory=dict)
    """Ids that each container asks for, in the order in which the kubelet allocates."""
    inits: frozenset[str] = frozenset()
    """Those containers that end before the others begin; the kubelet does not tell what they hold."""
    decision: Decision | None = None
    """None: there is none that counts."""
    fault: str = ""
    """Why an annotation that is there does not count."""
    started: bool = False
    """Whether the kubelet has let it in: everything was allocated before that."""
    ended: bool = False

    @property
    def title(self) -> str:
        """For people."""
        return f"{self.namespace}/{self.name}"


def read_pod(manifest: Manifest, dialect: Dialect) -> BoundPod | None:
    """What counts of a pod; None for one that is not concerned."""
    metadata, spec, status = manifest["metadata"], manifest.get("spec") or {}, manifest.get("status") or {}
    asks = dict(_asks(spec, REQUESTED[dialect]))
    text = (metadata.get("annotations") or {}).get(names.ANNOTATION_DECISION, "")
    if not asks:
        return None
    decision, fault = _read_decision(text, metadata["uid"], dialect, asks) if text else (None, "")
    version = metadata.get("resourceVersion", "")
    return BoundPod(
        uid=metadata["uid"],
        namespace=metadata["namespace"],
        name=metadata["name"],
        version=int(version) if version.isdecimal() else 0,
        asks=asks,
        inits=frozenset(item["name"] for item in spec.get("initContainers") or () if not _is_sidecar(item)),
        decision=decision,
        fault=fault,
        started=bool(status.get("startTime")),
        ended=status.get("phase") in _ENDED,
    )


def size_of(grants: tuple[Grant, ...]) -> int:
    """How many ids the kubelet gives a container for them."""
    return sum(grant.units or 1 for grant in grants)


def _read_decision(text: str, uid: str, dialect: Dialect, asks: Mapping[str, int]) -> tuple[Decision | None, str]:
    """The decision, or why the annotation is none for this pod: people copy annotations, and some forge them."""
    try:
        decision = Decision.from_annotation(text)
    except ValueError as error:
        return None, str(error)
    if decision.pod_uid != uid:
        return None, f"its annotation {names.ANNOTATION_DECISION} is that of another pod"
    if decision.dialect is not dialect:
        return (
            None,
            f"it was placed for fractions in the words of {decision.dialect}, and this node has those of {dialect}",
        )
    if {name: size_of(grants) for name, grants in decision.containers.items()} != dict(asks):
        return None, f"its annotation {names.ANNOTATION_DECISION} does not fit what its containers ask for"
    # In the kubelet's order, whatever that of the annotation is.
    ordered = {name: decision.containers[name] for name in asks}
    return Decision(pod_uid=uid, dialect=dialect, shape=decision.shape, containers=ordered), ""


def _asks(spec: Mapping[str, Any], resource: str) -> Iterator[tuple[str, int]]:
    for container in (*(spec.get("initContainers") or ()), *(spec.get("containers") or ())):
        amount = count_of(((container.get("resources") or {}).get("limits") or {}).get(resource, "0"))
        if amount:
            yield container["name"], amount


def _is_sidecar(container: Mapping[str, Any]) -> bool:
    return container.get("restartPolicy") == "Always"
