"""Why a pod waits, why it got the GPUs that it has, why a node runs what it runs. Called by `gpushare explain`.

What is said of a pod is worked out again by the scheduler's own rules, from what the cluster shows now.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from gpushare import names
from gpushare.domain.fractions import Decision, Dialect, FractionMode, Isolation
from gpushare.domain.gpunode import CONFIG_APPLIED, CONFIG_ASSIGNED, ConfigReason, GPUNode
from gpushare.domain.manifests import Manifest
from gpushare.placement import policies
from gpushare.placement.fitting import Fit
from gpushare.placement.nodes import NodeState
from gpushare.placement.reasons import explain
from gpushare.placement.requests import ReadRequest
from gpushare.placement.shapes import ContainerRequest, PodRequest, Policy
from gpushare.views import misnomers
from gpushare.views.tables import build_blocks, build_table

TIERS: Final[Mapping[Isolation, str]] = {
    Isolation.NONE: "nothing: fractions are only counted, and a container that takes more is not stopped",
    Isolation.MPS: "CUDA MPS: memory is limited, and compute by the active thread percentage",
    Isolation.HAMI_CORE: "HAMi's library, as the administrator supplies it, inside the container",
    Isolation.MIG: "hardware: whole MIG instances",
    Isolation.EXCLUSIVE: "nobody else being there: one container a GPU",
}
"""What holds containers to their fraction."""
_ORDERS: Final[Mapping[Policy, str]] = {
    Policy.BINPACK: "binpack: of the GPUs that fit, the one that is used most",
    Policy.SPREAD: "spread: of the GPUs that fit, the one that is used least",
    Policy.NUMA: "numa: GPUs of one NUMA node",
    Policy.MUTEX: "mutex: GPUs that nobody uses",
    Policy.TOPOLOGY: "topology-aware: GPUs that are close to each other",
}
_REASONS: Final[Mapping[ConfigReason, str]] = {
    ConfigReason.LABEL: f"the node's label {names.LABEL_CONFIG} names it",
    ConfigReason.ACK: "the node's labels of Alibaba's container service say it",
    ConfigReason.HAMI: f"the node's label {names.LABEL_HAMI_NODE}=on says it",
    ConfigReason.DEFAULT: "it is the default of the policy",
    ConfigReason.NONE: "nothing names a configuration, so that GPUs are not shared",
}


_ENDED: Final = ("Succeeded", "Failed")


@dataclass(frozen=True, slots=True, kw_only=True)
class Explanation:
    """What there is to say, as pairs of a word and a text; then about nodes one by one."""

    subject: str
    facts: tuple[tuple[str, str], ...]
    nodes: Mapping[str, str] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        """For programs: texts by word, several of one word in a list."""
        facts: dict[str, list[str]] = {}
        for word, text in self.facts:
            facts.setdefault(word, []).append(text)
        return {"subject": self.subject, "facts": facts, "nodes": dict(self.nodes)}

    def to_text(self) -> str:
        """For people."""
        parts = [self.subject, build_blocks(self.facts)]
        if self.nodes:
            parts.append(build_table(["NODE", "GPUS FOR IT NOW?"], sorted(self.nodes.items())))
        return "\n\n".join(parts)


@dataclass(frozen=True, slots=True, kw_only=True)
class PodPicture:
    """All that is known about one pod."""

    pod: Manifest
    read: ReadRequest
    node: NodeState | None = None
    """Where it is, without it; None: nowhere, or on a node without fractions."""
    decision: Decision | None = None
    held: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """By container: UUIDs of the GPUs that it has, by the agent's word or else by the decision."""
    parts: Sequence[str] = ()
    """What it has by the agent's word, in the caller's words; for pods that fractions are not counted for."""
    is_confirmed: bool = False
    fits: Mapping[str, Fit] = field(default_factory=dict)
    """By node: whether it has GPUs for the pod now."""
    idle: Collection[str] = ()
    """Nodes that offer nothing of what pods like it ask for, whatever is free there."""
    known_resources: Collection[str]
    """Those that somebody in the cluster serves or counts."""


def explain_pod(picture: PodPicture) -> Explanation:
    """Why it is where it is, or why it is nowhere."""
    metadata, status = picture.pod["metadata"], picture.pod.get("status") or {}
    facts = [("phase", str(status.get("phase", "unknown"))), *_asked(picture)]
    nodes: Mapping[str, str] = {}
    if status.get("phase") in _ENDED:
        facts += _ended(picture.pod)
    elif picture.pod["spec"].get("nodeName"):
        facts += _placed(picture)
    else:
        facts += _waiting(picture)
        nodes = {name: _verdict(name, fit, picture.idle) for name, fit in picture.fits.items()}
    return Explanation(subject=f"pod {metadata['namespace']}/{metadata['name']}", facts=tuple(facts), nodes=nodes)


def explain_node(node: GPUNode, state: NodeState | None, holders: Sequence[str]) -> Explanation:
    """Why it runs what it runs, and what is wrong. `holders`: pods, in the caller's words."""
    status, config = node.status, node.config
    facts: list[tuple[str, str]] = []
    if config is None:
        facts.append(("configuration", "none was assigned yet: is the controller running?"))
    else:
        facts.append(("configuration", f"{config.name}: {_why(node) or _REASONS[config.reason]}"))
        if config.source is not None:
            facts.append(("from", f"ConfigMap {config.source.namespace}/{config.source.name}, key {config.source.key}"))
        facts.append(("in force", _in_force(node)))
    facts += [("fractions", _mode(status.fractions))] if status.fractions else []
    facts += [("limited by", TIERS[status.fractions.isolation])] if status.fractions else []
    facts += [("resource", f"{each.name}: {each.total} offered, {each.healthy} healthy, {each.allocated} allocated")
              for each in status.resources if each.total]  # fmt: skip
    facts += [("GPU", text) for text in _gpus(node, state)]
    word = "problem" if any((c.type, c.status) == (CONFIG_APPLIED, "False") for c in status.conditions) else "warning"
    facts += [(word, str(problem)) for problem in status.problems]
    facts += [
        ("not so", f"{each.type}: {each.message or each.reason}")
        for each in status.conditions
        if each.status == "False"
    ]
    facts += [("pod", text) for text in holders]
    return Explanation(subject=f"node {node.name}", facts=tuple(facts))


def _why(node: GPUNode) -> str:
    """In the controller's words, where it has given none: there may be a label that counts for nothing."""
    is_none = node.config is not None and node.config.reason is ConfigReason.NONE
    told = (each.message for each in node.status.conditions if (each.type, each.status) == (CONFIG_ASSIGNED, "True"))
    return next(told, "") if is_none else ""


def _in_force(node: GPUNode) -> str:
    wanted = node.config.revision if node.config else ""
    applied = node.status.applied_revision
    if applied is None:
        return "not yet: no agent has applied anything on the node"
    there, due = (f"revision {each}" if each else "the defaults" for each in (applied, wanted))
    return f"yes, {there}" if applied == wanted else f"no: {there} instead of {due}"


def _mode(mode: FractionMode) -> str:
    if mode.dialect is Dialect.HAMI:
        return f"in HAMi's dialect: {mode.slots} slots a GPU, {mode.placement.value}"
    return f"in Alibaba's dialect: units of {mode.unit_mib} MiB, {mode.placement.value}"


def _gpus(node: GPUNode, state: NodeState | None) -> Iterator[str]:
    uses = dict(zip((gpu.uuid for gpu in state.gpus), state.uses, strict=True)) if state else {}
    totals = {gpu.uuid: gpu.traits for gpu in state.gpus} if state else {}
    for device in node.status.devices:
        text = f"{device['index']}: {device.get('product', '')}"
        if device["uuid"] in uses:
            use, traits = uses[device["uuid"]], totals[device["uuid"]]
            text += f", {use.memory_mib} of {traits.memory_mib} MiB and {use.cores} of {traits.cores} % given out"
            text += ", cordoned" if traits.is_cordoned else ""
        elif state is not None and state.mode is not None and device.get("migEnabled"):
            text += ", in MIG mode: takes no part in fractions"
        health = device.get("health") or {}
        text += "" if health.get("healthy", True) else f", not healthy: {health.get('reason', 'no reason given')}"
        yield text


def _asked(picture: PodPicture) -> Iterator[tuple[str, str]]:
    request = picture.read.request
    problems = (*picture.read.problems, *misnomers.find_problems(picture.pod, picture.known_resources))
    if request is not None:
        for container in request.containers:
            yield "asks for", f"{container.name}: {_amounts(container, request)}"
    elif not problems:
        yield "asks for", "no fraction of a GPU; the resources of its node alone decide"
    yield from (("problem", str(problem)) for problem in problems)
    yield from (("warning", str(warning)) for warning in picture.read.warnings)


def _amounts(container: ContainerRequest, request: PodRequest) -> str:
    memory = (
        f"{container.units} units" if container.units
        else f"{container.memory_mib} MiB" if container.memory_mib else f"{container.memory_percent} % of the memory"
    )  # fmt: skip
    compute = f", {container.cores} % of compute" if container.cores else ""
    number = f"{container.gpus} GPUs, of each" if container.gpus > 1 else "1 GPU,"
    return f"{number} {memory}{compute}, in the dialect {request.dialect.value}"


def _ended(pod: Manifest) -> Iterator[tuple[str, str]]:
    status = pod["status"]
    if node := pod["spec"].get("nodeName"):
        yield "node", str(node)
    if status.get("reason"):
        yield "why it ended", f"{status['reason']}: {status.get('message', '')}"
    yield "has", "nothing any more: it has ended"


def _placed(picture: PodPicture) -> Iterator[tuple[str, str]]:
    yield "node", str(picture.pod["spec"]["nodeName"])
    node, request = picture.node, picture.read.request
    if node is None or request is None:
        yield from (("has", part) for part in picture.parts)
        return
    indexes = {gpu.uuid: gpu.index for gpu in node.gpus}
    for container, uuids in picture.held.items():
        named = (f"GPU {indexes[uuid]} ({uuid})" if uuid in indexes else f"{uuid}, which is gone" for uuid in uuids)
        yield "has", f"{container}: {', '.join(named)}"
    if picture.decision is None:
        yield "decided by", "nobody of ours: it was bound without the scheduler of fractions"
    elif picture.is_confirmed:
        yield "confirmed", "yes: the node has given its devices out"
    else:
        yield "confirmed", "not yet: the kubelet has not asked for its devices, or the agent has not told"
    yield from _why_this_gpu(node, request)


def _why_this_gpu(node: NodeState, request: PodRequest) -> Iterator[tuple[str, str]]:
    assert node.mode is not None
    words = policies.order_of(request.gpu_policy, node.mode.placement, is_bound=request.constraints.numa_bind)
    origin = "the pod's own wish" if request.gpu_policy else "the node's placement"
    yield "why this GPU", f"{'; then '.join(_ORDERS[word] for word in words)} ({origin})"
    for gpu, use in zip(node.gpus, node.uses, strict=True):
        yield "beside it", f"GPU {gpu.index}: {use.memory_mib} of {gpu.traits.memory_mib} MiB given out to others"
    yield "limited by", TIERS[node.mode.isolation]


def _waiting(picture: PodPicture) -> Iterator[tuple[str, str]]:
    spec, conditions = picture.pod["spec"], (picture.pod.get("status") or {}).get("conditions") or ()
    yield "scheduler", str(spec.get("schedulerName", "default-scheduler"))
    said = next((each for each in conditions if each["type"] == "PodScheduled" and each["status"] == "False"), None)
    if said is None:
        yield "why it waits", "no scheduler has said anything yet: it is just being placed, or none of that name runs"
    else:
        yield "why it waits", f"{said.get('reason', '')}: {said.get('message', '')}"


def _verdict(node: str, fit: Fit, idle: Collection[str]) -> str:
    if fit.containers is not None:
        return f"the node offers none: `gpushare explain node/{node}` says why" if node in idle else "yes"
    return "; ".join(map(explain, fit.reasons)) or "no"


def list_holders(held_by: Iterable[tuple[str, Mapping[int, int]]]) -> list[str]:
    """Pods with MiB by index of the GPU, in words."""
    return [
        f"{name}: " + ", ".join(f"{memory} MiB of GPU {index}" for index, memory in sorted(held.items()))
        for name, held in sorted(held_by)
    ]
