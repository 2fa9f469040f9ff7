"""A roll-out under the brake, played through before it begins: its steps, and where it would end. For previews."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from gpushare.plan import braking, wording
from gpushare.plan.braking import Candidate
from gpushare.plan.rollouts import Phase, Progress
from gpushare.plan.snapshot import Settings

_STEPS = 4
"""How many steps a text spells out."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rehearsal:
    """What becomes of a roll-out."""

    steps: tuple[tuple[str, ...], ...] = ()
    """Nodes that get something new, in order; those of one step at once."""
    held: Mapping[str, str] = field(default_factory=dict)
    """Nodes that would never get it as things are, and why."""

    @property
    def text(self) -> str:
        """The steps for people; empty where all nodes get it at once."""
        if len(self.steps) < 2 and not self.held:
            return ""
        shown = [wording.listed(step) for step in self.steps[:_STEPS]]
        rest = self.steps[_STEPS:]
        if rest:
            shown.append(f"{sum(map(len, rest))} more in {wording.counted(len(rest), 'step')}")
        return "; then ".join(shown)


def rehearse(candidates: Iterable[Candidate], outcomes: Mapping[str, Progress], settings: Settings) -> Rehearsal:
    """Plays it through.

    Args:
        candidates: all nodes, before anything is given to them.
        outcomes: what becomes of each once it is given what is named for it.
        settings: with the brake.
    """
    fleet = {each.name: each for each in candidates}
    # Nodes that wait for nobody have theirs from the start.
    fleet |= {name: _given(each, outcomes) for name, each in fleet.items() if not each.moves}
    steps: list[tuple[str, ...]] = []
    while True:
        held = braking.hold(tuple(fleet.values()), settings)
        step = tuple(name for name, each in fleet.items() if each.moves and name not in held)
        if not step:
            return Rehearsal(steps=tuple(steps), held=held)
        steps.append(step)
        fleet |= {name: _given(fleet[name], outcomes) for name in step}


def _given(candidate: Candidate, outcomes: Mapping[str, Progress]) -> Candidate:
    progress = outcomes.get(candidate.name) if candidate.progress is not None else None
    return replace(candidate, stored=candidate.wanted, progress=progress)


def outcome_of(progress: Progress, refusals: Iterable[str]) -> Progress:
    """What becomes of a node whose agent is at work, or is not: that is known from where it stands now.

    Args:
        progress: where it stands, on the way to what is named for it.
        refusals: why its agent would refuse that.
    """
    if progress.phase is Phase.KEPT or progress.remedy:
        return progress
    return replace(progress, phase=Phase.REFUSED if tuple(refusals) else Phase.APPLIED, text="")
