"""The brake of a roll-out: which nodes have to wait with something new, and for what. Called by `fleet`.

Decided anew in each pass from what nodes run and report, so that nothing is to be remembered: an edit that heals what was
refused goes on by itself, and so does a controller that was away.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from gpushare.domain.gpunode import Config
from gpushare.plan import wording
from gpushare.plan.rollouts import Phase, Progress
from gpushare.plan.snapshot import Settings


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """One node before the brake."""

    name: str
    canary: bool
    wanted: Config
    stored: Config | None
    """None: nothing was given to it yet, so there is nothing to lose, and it never waits."""
    progress: Progress | None
    """On the way to what is wanted; None: no agent runs there."""

    @property
    def moves(self) -> bool:
        """Whether it would be given something that its agent has to apply: another text, or another MIG strategy."""
        return self.stored is not None and _essence(self.stored) != _essence(self.wanted)


_Essence: TypeAlias = tuple[str, str]


def _essence(config: Config) -> _Essence:
    return config.content, config.mig_strategy


def hold(candidates: Sequence[Candidate], settings: Settings) -> dict[str, str]:
    """Why a node waits, in one sentence that is the same for all who wait for the same; by name."""
    held: dict[str, str] = {}
    if settings.canary is not None:
        reason = _awaited_canaries(candidates, settings.canary.text)
        held |= {each.name: reason for each in candidates if reason and each.moves and not each.canary}
    if settings.stop_on_refusal:
        rest = [each for each in candidates if each.name not in held]
        for essence in dict.fromkeys(_essence(each.wanted) for each in rest if each.moves):
            held |= _held_by_steps([each for each in rest if _essence(each.wanted) == essence])
    return held


def _awaited_canaries(candidates: Iterable[Candidate], selector: str) -> str:
    """What keeps the canary nodes from being done; empty: they are."""
    labelled = [each for each in candidates if each.canary]
    if not labelled:
        return f"no GPU node has the labels of canary nodes ({selector}); label one, or correct rollout.canary"
    canaries = [each for each in labelled if each.progress is not None]
    if not canaries:
        idle = _nodes([each.name for each in labelled])
        return (
            f"no agent runs on canary {idle}; let it, or give the labels of canary nodes ({selector}) to another node"
        )
    if refusing := _names(canaries, Phase.REFUSED, Phase.KEPT):
        return f"canary {_nodes(refusing)} cannot use what was named; correct that, or take {selector} from what will never fit"
    if waiting := _names(canaries, Phase.WAITING):
        return f"until canary {_nodes(waiting)} has applied what it was given"
    return ""


def _held_by_steps(group: Collection[Candidate]) -> dict[str, str]:
    """In steps: of each revision, no more nodes get it at once than run it already, so that a refusal comes early."""
    moving = [each for each in group if each.moves]
    given = [each for each in group if not each.moves]
    if refusing := _names(given, Phase.REFUSED):
        reason = (
            f"stopped, since {_nodes(refusing)} refuses it; correct the configuration, or give that node another one"
        )
        return {each.name: reason for each in moving}
    applied = sum(each.progress is not None and each.progress.phase is Phase.APPLIED for each in given)
    # Who has no agent at work tells nothing, and must not stop the others.
    applying = [
        each.name
        for each in given
        if each.progress and each.progress.phase is Phase.WAITING and not each.progress.remedy
    ]
    room = max(1, applied) - len(applying)
    ordered = sorted(moving, key=lambda each: (not each.canary, each.name))
    return {each.name: "its turn comes as soon as those before it have applied it" for each in ordered[max(0, room) :]}


def _names(candidates: Iterable[Candidate], *phases: Phase) -> list[str]:
    return [each.name for each in candidates if each.progress is not None and each.progress.phase in phases]


def _nodes(found: Collection[str]) -> str:
    return f"{'node' if len(found) == 1 else 'nodes'} {wording.listed(found)}"
