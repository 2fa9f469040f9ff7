"""Which pods a DaemonSet gets and loses now. Pure: the controller carries it out."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

from gpushare.domain.manifests import Manifest
from gpushare.sandbox.apiserver.objects import selectors
from gpushare.sandbox.loops import caches
from gpushare.sandbox.workloads import pods as pod_facts
from gpushare.sandbox.workloads import templates
from gpushare.sandbox.workloads.daemonsets import placing
from gpushare.sandbox.workloads.daemonsets.placing import LABEL_HASH

Pods = list[Manifest]


@dataclass(frozen=True, slots=True, kw_only=True)
class View:
    """A DaemonSet and all that its controller looks at."""

    daemon_set: Manifest
    revision_hash: str
    """Of the current template."""
    nodes: Sequence[Manifest]
    pods: Sequence[Manifest]
    """Those that the DaemonSet controls."""
    now: float
    """Seconds since 1970."""

    @property
    def min_ready_seconds(self) -> int:
        """How long a pod must be ready to count as available."""
        return int(self.daemon_set["spec"].get("minReadySeconds") or 0)

    def is_new(self, pod: Manifest) -> bool:
        """Whether a pod has the current template."""
        return selectors.labels_of(pod).get(LABEL_HASH) == self.revision_hash

    def is_available(self, pod: Manifest) -> bool:
        """Whether a pod has been ready for long enough."""
        return pod_facts.is_available(pod, self.min_ready_seconds, self.now)

    def pods_by_node(self) -> dict[str, Pods]:
        """The pods of each node, oldest first. Those that have ended and are going no longer count."""
        found: dict[str, Pods] = {}
        for pod in sorted(self.pods, key=_age):
            if not (pod_facts.has_ended(pod) and caches.is_terminating(pod)):
                found.setdefault(pod_facts.node_of(pod), []).append(pod)
        return found


@dataclass(frozen=True, slots=True, kw_only=True)
class Actions:
    """What to do now."""

    create: Sequence[str] = ()
    """Node names."""
    delete: Sequence[Manifest] = ()
    ended: Mapping[str, Manifest] = field(default_factory=dict)
    """By node: pods that have ended and must be replaced; part of `delete`, and said in an event."""

    @property
    def is_empty(self) -> bool:
        """Whether all pods are as they should be."""
        return not self.create and not self.delete


def build_actions(view: View, held: Collection[str] = ()) -> Actions:
    """Missing pods are made and superfluous ones removed; only where nothing of that is due, old ones are renewed.

    `held` names nodes whose pod has failed so often that the next attempt has to wait.
    """
    actions = _build_presence(view, held)
    if not actions.is_empty or _strategy(view.daemon_set).get("type", "RollingUpdate") == "OnDelete":
        return actions
    if surge_of(view.daemon_set, 1):
        return _build_surge(view)
    return _build_replacement(view)


def desired_count(view: View) -> int:
    """On how many nodes a pod should run."""
    return sum(placing.build_placement(view.daemon_set, node).should_run for node in view.nodes)


def surge_of(daemon_set: Manifest, desired: int) -> int:
    """How many nodes may have an old and a new pod at once."""
    rolling = _strategy(daemon_set).get("rollingUpdate") or {}
    return _scaled(rolling.get("maxSurge", 0), desired)


def unavailable_of(daemon_set: Manifest, desired: int) -> int:
    """How many nodes may be without an available pod during a rollout; at least one where nothing may surge."""
    rolling = _strategy(daemon_set).get("rollingUpdate") or {}
    count = _scaled(rolling.get("maxUnavailable", 1), desired)
    return count or int(not surge_of(daemon_set, desired))


def _build_presence(view: View, held: Collection[str]) -> Actions:
    by_node = view.pods_by_node()
    create: list[str] = []
    delete: Pods = []
    ended: dict[str, Manifest] = {}
    for node in view.nodes:
        name = node["metadata"]["name"]
        present = by_node.pop(name, [])
        placement = placing.build_placement(view.daemon_set, node)
        if not placement.should_continue:
            delete += present
        elif placement.should_run and not present:
            create.append(name)
        else:
            done = [pod for pod in present if pod_facts.has_ended(pod)]
            if done and name not in held:
                ended[name] = done[0]
                delete += done
            delete += _superfluous(view, [pod for pod in present if pod_facts.is_active(pod)])
    for stranded in by_node.values():
        delete += stranded  # their node is gone
    leaving = [pod for pod in delete if not caches.is_terminating(pod)]
    return Actions(create=create, delete=leaving, ended=ended)


def _superfluous(view: View, running: Pods) -> Pods:
    if not surge_of(view.daemon_set, 1):
        return running[1:]
    new = [pod for pod in running if view.is_new(pod)]
    old = [pod for pod in running if not view.is_new(pod)]
    excess = new[1:] + old[1:]
    if new and old and (not pod_facts.is_ready(old[0]) or view.is_available(new[0])):
        excess.append(old[0])
    return excess


def _build_replacement(view: View) -> Actions:
    """Deletes old pods, so that new ones take their place: first those that do not work, then as many as may be missing."""
    missing = 0
    broken: Pods = []
    candidates: Pods = []
    for present in view.pods_by_node().values():
        if len(present) > 1 or caches.is_terminating(present[0]):
            missing += 1
        elif view.is_new(present[0]):
            missing += not view.is_available(present[0])
        elif view.is_available(present[0]):
            candidates.append(present[0])
        else:
            broken.append(present[0])
    allowed = max(0, unavailable_of(view.daemon_set, desired_count(view)) - missing)
    return Actions(delete=broken + candidates[:allowed])


def _build_surge(view: View) -> Actions:
    """Makes new pods beside old ones; the old ones go once the new ones are available."""
    surging = 0
    broken: list[str] = []
    candidates: list[str] = []
    for node, present in view.pods_by_node().items():
        active = [pod for pod in present if pod_facts.is_active(pod)]
        new = [pod for pod in active if view.is_new(pod)]
        if not active or (new and len(new) == len(active)):
            continue
        if new:
            surging += not view.is_available(new[0])
        elif view.is_available(active[0]):
            candidates.append(node)
        else:
            broken.append(node)
    allowed = max(0, surge_of(view.daemon_set, desired_count(view)) - surging)
    return Actions(create=broken + candidates[:allowed])


def _strategy(daemon_set: Manifest) -> Manifest:
    return dict(daemon_set["spec"].get("updateStrategy") or {})


def _scaled(value: int | str, total: int) -> int:
    return templates.scaled(value, total, round_up=True)


def _age(pod: Manifest) -> tuple[str, str]:
    return pod["metadata"]["creationTimestamp"], pod["metadata"]["name"]
