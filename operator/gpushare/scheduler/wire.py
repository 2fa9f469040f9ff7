"""The protocol between kube-scheduler and its extenders (`k8s.io/kube-scheduler/extender/v1`), both ways. Used by `extender`.

Its Go types have no JSON tags: kube-scheduler writes capitalised names, Go reads any case, and so do we. What is inside a
Pod or a Node is spelled as everywhere.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from json.encoder import encode_basestring_ascii
from typing import Any

from gpushare.domain.manifests import Manifest


class BadCall(ValueError):  # noqa: N818 - the state is the name, as in `errors`
    """The body is none of the protocol; says what is missing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NodesCall:
    """What filter and prioritize are asked: a pod, and nodes by name, or whole where the caller does not cache them."""

    pod: Manifest
    names: Sequence[str]
    nodes: Mapping[str, Manifest] | None = None
    """Whole nodes by name; None where only names were given."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BindCall:
    """A pod, and the node that it is to be bound to."""

    namespace: str
    name: str
    uid: str
    node: str

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Victims:
    """What is to be evicted from a node."""

    uids: tuple[str, ...]
    violations: int = 0
    """PodDisruptionBudgets that would be broken."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PreemptCall:
    """A pod, and by node the pods that kube-scheduler would evict for it."""

    pod: Manifest
    victims: Mapping[str, Victims]


@dataclass(frozen=True, slots=True, kw_only=True)
class Filtered:
    """The answer to filter."""

    fitting: Sequence[str]
    failed: Mapping[str, str] = field(default_factory=dict)
    """Reason by node, where evicting pods might help."""
    unresolvable: Mapping[str, str] = field(default_factory=dict)
    """Reason by node, where nothing that is evicted would help."""


def read_nodes_call(body: bytes) -> NodesCall:
    """Reads `ExtenderArgs`. Raises BadCall."""
    args = _object(body)
    pod = _pod(args)
    whole, names = args.get("nodes"), args.get("nodenames")
    if isinstance(names, list):
        return NodesCall(pod=pod, names=names)
    if not isinstance(whole, dict):
        raise BadCall("neither NodeNames nor Nodes are given")
    with _reading("Nodes"):
        nodes = {str(node["metadata"]["name"]): node for node in whole.get("items") or ()}
    return NodesCall(pod=pod, names=tuple(nodes), nodes=nodes)


def read_bind_call(body: bytes) -> BindCall:
    """Reads `ExtenderBindingArgs`. Raises BadCall."""
    args = _object(body)
    missing = [name for name in ("PodName", "PodNamespace", "PodUID", "Node") if not args.get(name.lower())]
    if missing:
        raise BadCall(f"{', '.join(missing)} not given")
    return BindCall(
        namespace=str(args["podnamespace"]), name=str(args["podname"]), uid=str(args["poduid"]), node=str(args["node"])
    )


def read_preempt_call(body: bytes) -> PreemptCall:
    """Reads `ExtenderPreemptionArgs`, victims whole or by uid. Raises BadCall."""
    args = _object(body)
    given = args.get("nodenametometavictims") or args.get("nodenametovictims") or {}
    with _reading("victims"):
        return PreemptCall(pod=_pod(args), victims={str(node): _victims(victims) for node, victims in given.items()})


def _victims(given: Mapping[str, Any]) -> Victims:
    victims = _lowered(given)
    pods = [_lowered(pod) for pod in victims.get("pods") or ()]
    return Victims(
        uids=tuple(str(pod.get("uid") or (pod.get("metadata") or {}).get("uid", "")) for pod in pods),
        violations=int(victims.get("numpdbviolations") or 0),
    )


def write_filtered(call: NodesCall, filtered: Filtered) -> bytes:
    """`ExtenderFilterResult`, with nodes in the form in which they were given."""
    answer: dict[str, Any] = {
        "FailedNodes": filtered.failed,
        "FailedAndUnresolvableNodes": filtered.unresolvable,
        "Error": "",
    }
    if call.nodes is None:
        answer["NodeNames"] = filtered.fitting
    else:
        answer["Nodes"] = {"metadata": {}, "items": [call.nodes[name] for name in filtered.fitting]}
    return _bytes(answer)


def write_scores(scores: Iterable[tuple[str, int]]) -> bytes:
    """`HostPriorityList`: scores from 0 to 10."""
    # Put together by hand, as it is asked for every pod and long: the encoder takes four times as long for as many objects.
    entries = (f'{{"Host":{encode_basestring_ascii(name)},"Score":{score}}}' for name, score in scores)
    return f"[{','.join(entries)}]".encode()


def write_victims(victims: Mapping[str, Victims]) -> bytes:
    """`ExtenderPreemptionResult`."""
    return _bytes(
        {
            "NodeNameToMetaVictims": {
                node: {"Pods": [{"UID": uid} for uid in found.uids], "NumPDBViolations": found.violations}
                for node, found in victims.items()
            }
        }
    )


def write_error(error: str) -> bytes:
    """A result that holds nothing but `Error`; empty: it was done. kube-scheduler reads it from a 200 only."""
    return _bytes({"Error": error})


@contextmanager
def _reading(what: str) -> Iterator[None]:
    """What is not as the protocol has it is said, whatever it is."""
    try:
        yield
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        raise BadCall(f"{what}: not in the form of the protocol: {error}") from error


def _object(body: bytes) -> dict[str, Any]:
    try:
        parsed = json.loads(body)
    except ValueError as error:
        raise BadCall(f"the body is no JSON: {error}") from error
    if not isinstance(parsed, dict):
        raise BadCall("the body is no JSON object")
    return _lowered(parsed)


def _lowered(given: Mapping[str, Any]) -> dict[str, Any]:
    return {name.lower(): value for name, value in given.items()}


def _pod(args: Mapping[str, Any]) -> Manifest:
    pod = args.get("pod")
    if not isinstance(pod, dict) or not isinstance(pod.get("metadata"), dict):
        raise BadCall("Pod is not given")
    return pod


def _bytes(answer: Any) -> bytes:
    return json.dumps(answer, separators=(",", ":")).encode()
