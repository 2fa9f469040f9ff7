"""How far the nodes are with what they were given. Used by `build` for the policy's status and for Events."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from gpushare import names
from gpushare.domain.conditions import Condition
from gpushare.domain.gpunode import CONFIG_APPLIED, MPS_READY, Config, GPUNode
from gpushare.domain.manifests import ObjectKey
from gpushare.plan import wording
from gpushare.plan.agents import Agent
from gpushare.plan.snapshot import Rollout

_NO_NODE: Final = (
    f"no node is there to run a configuration: none has one of the labels {', '.join(names.LABELS_NFD_GPU)} "
    f"of node feature discovery, or {names.LABEL_PRESENT} as a person writes it, with the value true"
)


class Phase(StrEnum):
    """Where one node stands."""

    APPLIED = "applied"
    KEPT = "kept"
    """It runs what it has had before, since what is named for it cannot be used."""
    WAITING = "waiting"
    REFUSED = "refused"
    """The agent says that the configuration does not fit its node."""
    HELD = "held"
    """It runs what it has had before, until the brake lets it have what is new."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """One node on its way to its configuration."""

    phase: Phase
    config: Config
    text: str = ""
    """Why it waits or refuses; empty when there is nothing to say."""
    remedy: str = ""
    """A command that tells more of this node."""
    warnings: tuple[str, ...] = ()
    """What the agent says of a configuration that it applied."""


def progress_of(
    config: Config, gpu_node: GPUNode | None, agent: Agent, *, kept: bool = False, unshown: str = ""
) -> Progress:
    """Where one node stands with `config`.

    Args:
        config: what the plan gives it.
        gpu_node: what is stored and reported.
        agent: of the node.
        kept: `config` is not what is named for the node, but what it has had before.
        unshown: what the Node does not show of what its agent offers; empty: it shows all of it.
    """
    if not agent.ready:
        return Progress(phase=Phase.WAITING, config=config, text=agent.text, remedy=agent.remedy)
    if gpu_node is None or gpu_node.config != config:
        return Progress(phase=Phase.WAITING, config=config)
    status = gpu_node.status
    problems = tuple(map(str, status.problems))
    applied = next((condition for condition in status.conditions if condition.type == CONFIG_APPLIED), None)
    if applied is not None and _is_about(applied, gpu_node):
        if applied.status == "False":
            return Progress(phase=Phase.REFUSED, config=config, text=wording.joined(problems) or applied.message)
        if status.applied_revision == config.revision:
            if waits := _waits_for_mps(status.conditions) or unshown:
                return Progress(phase=Phase.WAITING, config=config, text=waits)
            return Progress(phase=Phase.KEPT if kept else Phase.APPLIED, config=config, warnings=problems)
    return Progress(phase=Phase.WAITING, config=config)


def _waits_for_mps(conditions: Iterable[Condition]) -> str:
    """A configuration that is in force gives out nothing of MPS before its daemons run."""
    return next((each.message for each in conditions if each.type == MPS_READY and each.status == "False"), "")


def _is_about(condition: Condition, gpu_node: GPUNode) -> bool:
    # An agent that has not seen the newest spec yet tells of the one before; one that has just started tells of none.
    return condition.observed_generation is not None and condition.observed_generation >= gpu_node.generation


@dataclass(frozen=True, slots=True, kw_only=True)
class Summary:
    """All nodes together."""

    total: int = 0
    applied: int = 0
    running: str = ""
    """What runs where it is applied: `any (revision 3f9a1c20b7e4) on 2 nodes, unshared on 1 node`."""
    refused: tuple[str, ...] = ()
    """A sentence for each thing that nodes refuse."""
    waiting: tuple[str, ...] = ()
    kept: tuple[str, ...] = ()
    held: tuple[str, ...] = ()
    others: str = ""
    """How many did not apply what is named for them, by what they do instead: `1 refused, 8 waiting`."""

    @property
    def text(self) -> str:
        """For people, in a condition."""
        return wording.joined([self._head(self.others), *self.refused, *self.held, *self.kept, *self.waiting])

    @property
    def news(self) -> str:
        """What of it is worth an Event: what is refused, or else what is applied. Not what changes with every node."""
        return wording.joined(self.refused or [self._head()])

    def _head(self, others: str = "") -> str:
        if not self.total:
            return _NO_NODE
        head = f"applied on {self.applied} of {wording.counted(self.total, 'GPU node')}"
        head += f" ({others})" if others else ""
        return f"{head}: {self.running}" if self.running else head


def summarise(nodes: Mapping[str, Progress]) -> Summary:
    """Counts, groups, and names a few."""
    running: dict[str, int] = {}
    refused: dict[tuple[str, str], list[str]] = {}
    kept: dict[str, list[str]] = {}
    waiting: dict[str, list[str]] = {}
    held: dict[str, list[str]] = {}
    for name, progress in sorted(nodes.items()):
        match progress.phase:
            case Phase.APPLIED:
                title = title_of(progress.config)
                running[title] = running.get(title, 0) + 1
            case Phase.KEPT:
                kept.setdefault(_origin_of(progress.config), []).append(name)
            case Phase.REFUSED:
                refused.setdefault((attempt_of(progress.config), progress.text), []).append(name)
            case Phase.HELD:
                held.setdefault(progress.text, []).append(name)
            case Phase.WAITING:
                waiting.setdefault(progress.text, []).append(name)
    return Summary(
        total=len(nodes),
        applied=sum(running.values()),
        running=", ".join(f"{title} on {wording.counted(count, 'node')}" for title, count in sorted(running.items())),
        refused=tuple(
            f"{wording.listed(who)} cannot {attempt} and {_verb('keep', who)} what was there: {text}"
            for (attempt, text), who in refused.items()
        ),
        kept=tuple(
            f"{wording.listed(who)} {_verb('keep', who)} {origin}"
            if origin
            else f"{wording.listed(who)} {_verb('stay', who)} unshared"
            for origin, who in kept.items()
        ),
        held=tuple(
            f"{wording.listed(who)} {_verb('keep', who)} what {'it has' if len(who) == 1 else 'they have'}: {text}"
            for text, who in held.items()
        ),
        others=", ".join(
            f"{count} {word}"
            for word, groups in (
                ("refused", refused.values()),
                ("held back", held.values()),
                ("kept", kept.values()),
                ("waiting", waiting.values()),
            )
            if (count := sum(map(len, groups)))
        ),
        waiting=tuple(
            f"waiting for {wording.listed(who)}"
            + (f" ({text})" if text else "")
            # Of many nodes in one trouble, a look at one of them tells about all.
            + (f": {remedy}" if (remedy := nodes[who[0]].remedy) else "")
            for text, who in waiting.items()
        ),
    )


def _verb(verb: str, who: Collection[str]) -> str:
    return f"{verb}s" if len(who) == 1 else verb


def title_of(config: Config) -> str:
    """A configuration for people."""
    return f"{config.name} (revision {config.revision})" if config.is_named else "unshared"


def attempt_of(config: Config) -> str:
    """What a node that refuses it was to do; without a configuration, only the policy itself asks for anything."""
    return f'run "{config.name}"' if config.is_named else "follow the policy"


def _origin_of(config: Config) -> str:
    """The same with its ConfigMap, which need not be the one that the policy names now; empty: unshared."""
    source = config.source
    return f"{title_of(config)} of ConfigMap {source.namespace}/{source.name}" if source is not None else ""


def is_rolled_out(rollout: Rollout, expected: int) -> bool:
    """Whether a DaemonSet runs everywhere as it is written now.

    Unlike NVIDIA's operator, this believes no number before the DaemonSet controller has seen the newest generation, and
    none that says 0 while nodes are there to run on.
    """
    return (
        rollout.observed >= rollout.generation
        and rollout.unavailable == 0
        and rollout.updated == rollout.desired == rollout.available
        and (rollout.desired > 0 or expected == 0)
    )


def describe_daemonset(key: ObjectKey, rollout: Rollout | None, expected: int) -> str:
    """What a DaemonSet still lacks; empty when it is rolled out.

    Args:
        key: of the DaemonSet.
        rollout: its numbers; None while it is not there.
        expected: on how many nodes it is meant to run.
    """
    if rollout is None:
        return f"{key} is being created"
    if is_rolled_out(rollout, expected):
        return ""
    if rollout.observed < rollout.generation:
        return f"{key} is being changed"
    if rollout.desired == 0:
        return f"{key} is scheduled on none of {wording.counted(expected, 'GPU node')}; look at their taints"
    numbers = f"{key}: {rollout.updated} of {rollout.desired} pods up to date, {rollout.available} available"
    return numbers + _what_helps(key, rollout)


def _what_helps(key: ObjectKey, rollout: Rollout) -> str:
    """Where nothing goes on by itself, or may not: what to type."""
    if rollout.on_delete and rollout.updated < rollout.available:
        command = f"kubectl delete pods -n {key.namespace} -l app={key.name}"
        return f"; updateStrategy is OnDelete, so the others wait until they are deleted (`{command}`)"
    if rollout.updated:
        return ""
    # Nothing else tells of pods that are not even made, as when a namespace or a quota does not let them in.
    return f" (`kubectl describe daemonset -n {key.namespace} {key.name}` tells what keeps them from being made)"
