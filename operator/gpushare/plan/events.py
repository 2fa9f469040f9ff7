"""Events that tell people of a change: one on the policy and one on the ConfigMap, and one on each node concerned.

A note stands as long as what it says is so, and is posted when it begins to stand. What stood is handed from pass to pass
(`Standing`), since the watch that would show it in the stored conditions is slower than the next pass. Called by `build`.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Final, NamedTuple, TypeAlias

from gpushare.domain import manifests
from gpushare.domain.conditions import Condition
from gpushare.domain.events import EventNote, EventType
from gpushare.domain.gpunode import CAPACITY_SHOWN, DEVICES_READY
from gpushare.domain.manifests import ObjectKey
from gpushare.plan import status
from gpushare.plan.assignments import Assignment, describe
from gpushare.plan.capacity import Showing
from gpushare.plan.rollouts import Phase, Progress, attempt_of, title_of
from gpushare.plan.snapshot import Node, Policy

Topic: TypeAlias = tuple[ObjectKey, str]
"""What a note is about: an object, and what of it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Note:
    """Something that stands now."""

    event: EventNote | None
    """None: it is undecided, so what stood before goes on standing."""
    known: bool = False
    """Said in what is stored: a controller that has just started does not say it again."""
    heals: bool = False
    """Worth saying only where it ends a warning."""


_IN_USE: Final = re.compile(r"\d+ of \S+ are in use.*? (?:would be left|are offered)")

Notes: TypeAlias = Mapping[Topic, Note]
Standing: TypeAlias = Mapping[Topic, EventNote]
"""What stood at the end of a pass, for the next one."""


def build_events(
    before: Standing | None, notes: Notes, *, partial: bool = False
) -> tuple[tuple[EventNote, ...], Standing]:
    """The Events to post, and what stands now.

    Args:
        before: what the last pass left standing; None in the first pass of a process.
        notes: of this pass.
        partial: this pass looked at the policy only, so whatever else stood goes on standing.
    """
    standing: dict[Topic, EventNote] = dict(before or {}) if partial else {}
    fresh: list[EventNote] = []
    for topic, note in notes.items():
        last = before.get(topic) if before is not None else None
        event = note.event or last
        if event is None:
            continue
        standing[topic] = event
        # The uid does not count: a ConfigMap that was made anew, with the same text, is no news.
        if (last is not None and _gist(event) == _gist(last)) or (before is None and note.known):
            continue
        if not note.heals or (last is not None and last.type is EventType.WARNING):
            fresh.append(event)
    return tuple(sorted(fresh, key=lambda e: (str(e.regarding), e.reason, e.message))), standing


def _gist(event: EventNote) -> tuple[str, EventType, str]:
    """What a note says, but for what changes with every pod: who uses how much at the moment."""
    reason, kind, message = event.says
    return reason, kind, _IN_USE.sub("", message)


def known_types(policy: Policy, conditions: Iterable[Condition]) -> frozenset[str]:
    """The conditions of a policy that say what is stored already."""
    stored = {(condition.type, condition.status, condition.message) for condition in policy.conditions}
    return frozenset(c.type for c in conditions if (c.type, c.status, c.message) in stored)


def condition_notes(regarding: ObjectKey, uid: str, conditions: Iterable[Condition], known: Collection[str]) -> Notes:
    """What is to be told of a policy or of its ConfigMap, one note a condition.

    Args:
        regarding: the object that people look at.
        uid: of it; empty where it does not exist.
        conditions: that the policy is going to have, as far as they are about the object.
        known: types of those that the policy has already.
    """
    notes: dict[Topic, Note] = {}
    for condition in conditions:
        if (said := _said_by(condition)) is not None:
            event = EventNote(regarding=regarding, uid=uid, reason=said.reason, type=said.type, message=said.message)
            notes[regarding, condition.type] = Note(
                event=event if said.reason else None, known=condition.type in known, heals=said.heals
            )
    return notes


class _Said(NamedTuple):
    reason: str
    """Empty: undecided."""
    type: EventType = EventType.NORMAL
    message: str = ""
    """Empty: that of the condition."""
    heals: bool = False


_CORRECTED: Final = _Said("Reconciled", message="what was wrong is corrected", heals=True)
_SAID: Final = {
    (status.CONFIG_VALID, status.DISABLED): _Said(""),
    (status.CONFIG_VALID, "ValidWithWarnings"): _Said("ConfigWarning", EventType.WARNING),
    (status.CONFIG_VALID, "True"): _Said("ConfigAccepted", heals=True),
    (status.CONFIG_VALID, "False"): _Said("ConfigRefused", EventType.WARNING),
    (status.ROLLED_OUT, "AllNodes"): _Said("ConfigApplied"),
    (status.ROLLED_OUT, "Refused"): _Said("ConfigNotApplied", EventType.WARNING),
    (status.ROLLED_OUT, "Waiting"): _Said(""),
    (status.ROLLED_OUT, "Held"): _Said(""),
    (status.ROLLED_OUT, "SomeNodes"): _Said("ConfigApplied"),
    (status.CONFLICT, "True"): _Said("Conflict", EventType.WARNING),
    (status.ERROR, status.RECONCILE_FAILED): _Said(status.RECONCILE_FAILED, EventType.WARNING),
    (status.ERROR, status.IGNORED): _Said(status.IGNORED, EventType.WARNING),
    (status.ERROR, status.OPERAND_NOT_READY): _CORRECTED,
    (status.ERROR, "False"): _CORRECTED,
}
"""By type of condition, and its reason before its status. What is not here never makes an Event."""


def _said_by(condition: Condition) -> _Said | None:
    said = _SAID.get((condition.type, condition.reason)) or _SAID.get((condition.type, condition.status))
    return said if said is None or said.message else said._replace(message=condition.message)


def node_notes(node: Node, assignment: Assignment, progress: Progress, *, known: bool) -> Notes:
    """What is to be told of one node: why it did not get what was named, or that it runs it, or why it cannot.

    Args:
        node: the Node, on which the Event is.
        assignment: what it gets.
        progress: how far it is.
        known: a controller before this one has told it.
    """
    key = ObjectKey(manifests.NODE, node.name)
    if assignment.refusal is not None:
        reason, kind, text = "ConfigRefused", EventType.WARNING, describe(node.name, assignment, assignment.refusal)
    elif progress.phase in {Phase.WAITING, Phase.HELD}:
        return {(key, "config"): Note(event=None)}
    elif progress.phase is Phase.REFUSED:
        reason, kind = "ConfigNotApplied", EventType.WARNING
        text = f"{node.name} cannot {attempt_of(progress.config)} and keeps what was there: {progress.text}"
    else:
        warnings = (*assignment.warnings, *progress.warnings)
        reason, kind = "ConfigApplied", EventType.WARNING if warnings else EventType.NORMAL
        text = f"{node.name} runs {title_of(progress.config)}" + "".join(f"; {warning}" for warning in warnings)
    event = EventNote(regarding=key, uid=node.uid, reason=reason, type=kind, message=text[:1024])
    return {(key, "config"): Note(event=event, known=known)}


def health_notes(node: Node, devices: Condition | None) -> Notes:
    """What is to be told of a node's GPUs: which are sick and why, and that they are well again.

    A controller that has just started tells it once more, for it cannot know whether the one before it did.

    Args:
        node: the Node, on which the Event is.
        devices: `DevicesReady` of its agent; None where that has said nothing yet.
    """
    if devices is None:
        return {}
    key = ObjectKey(manifests.NODE, node.name)
    if devices.status == "False":
        reason, kind, text = "GPUUnhealthy", EventType.WARNING, devices.message
    else:
        reason, kind, text = "GPURecovered", EventType.NORMAL, f"all GPUs can be used again: {devices.message}"
    event = EventNote(regarding=key, uid=node.uid, reason=reason, type=kind, message=text[:1024])
    return {(key, DEVICES_READY): Note(event=event, heals=kind is EventType.NORMAL)}


def capacity_notes(node: Node, showing: Showing) -> Notes:
    """What is to be told of a Node that does not show its shares, and that it shows them again.

    Args:
        node: the Node, on which the Event is.
        showing: what it shows.
    """
    key = ObjectKey(manifests.NODE, node.name)
    if (wrong := showing.condition) is not None:
        reason, kind, text = wrong.reason, EventType.WARNING, wrong.message
    elif showing.since:
        return {(key, CAPACITY_SHOWN): Note(event=None)}
    else:
        reason, kind, text = CAPACITY_SHOWN, EventType.NORMAL, f"{node.name} shows what its agent offers"
    event = EventNote(regarding=key, uid=node.uid, reason=reason, type=kind, message=text[:1024])
    return {(key, CAPACITY_SHOWN): Note(event=event, heals=kind is EventType.NORMAL)}
