"""What a node serves: the assigned configuration where it can be had, else the one in force, else its devices unshared.

Decides only. The agent carries it out, so that a configuration that is refused has touched nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from gpushare.agent import settings
from gpushare.agent.options import AgentOptions
from gpushare.agent.settings import Settings
from gpushare.api import parsing
from gpushare.api.parsing import ParsedSharing
from gpushare.api.sharing import SharingConfig
from gpushare.domain.devices import Inventory
from gpushare.domain.fractions import FractionMode
from gpushare.domain.pools import Pool
from gpushare.errors import Problem
from gpushare.host.files import HostFiles
from gpushare.host.state import LastGood
from gpushare.sharing import building
from gpushare.sharing.responses import ResponseOptions


@dataclass(frozen=True, slots=True, kw_only=True)
class Assignment:
    """The configuration that a node should run, as far as the agent can tell."""

    content: str = ""
    """The text; empty: the defaults."""
    mig_strategy: str = ""
    """What the policy says; empty: the text decides."""
    name: str = ""
    """For people: the key that the text came from, or the file."""
    generation: int | None = None
    """Of the GPUNode that says so."""
    problem: Problem | None = None
    """Why the text could not even be fetched."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """What to serve, and what to say about it."""

    in_force: LastGood | None
    """None: nothing was ever in force, and what is assigned cannot be; the devices are unshared."""
    settings: Settings
    responses: ResponseOptions
    pools: Mapping[str, Pool]
    refusal: tuple[Problem, ...] = ()
    """Why the assigned configuration is not the one in force."""
    notes: tuple[Problem, ...] = ()
    """What is to be said about the one that is."""
    fractions: FractionMode | None = None
    """How parts of GPUs are given out; None: they are not."""

    @property
    def revision(self) -> str | None:
        """Of the configuration in force."""
        from gpushare.domain.gpunode import revision_of  # late: nobody asks before the first list is out

        return None if self.in_force is None else revision_of(self.in_force.content)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Candidate:
    source: LastGood
    settings: Settings
    responses: ResponseOptions
    pools: Mapping[str, Pool]
    fractions: FractionMode | None = None
    problems: tuple[Problem, ...] = ()
    notes: tuple[Problem, ...] = ()


class Decider:
    """Remembers the last text that it read; otherwise the answer depends on the arguments and the host alone."""

    def __init__(self, options: AgentOptions, files: HostFiles) -> None:
        self._options = options
        self._files = files
        self._read: dict[str, ParsedSharing] = {}

    def know(self, last_good: LastGood) -> None:
        """Takes over what a text means, so that it need not be read."""
        if last_good.config is not None:
            self._read = {last_good.content: ParsedSharing(config=last_good.config)}

    def decide(
        self,
        assignment: Assignment | None,
        in_force: LastGood | None,
        inventory: Inventory | None,
        resources: Iterable[str],
    ) -> Decision:
        """Decides for one moment. May take a tenth of a second when it meets the first text.

        Args:
            assignment: None: nothing is assigned, which leaves in force what is.
            in_force: what was in force before.
            inventory: None: the driver has not answered; nothing can be served then, and nothing be said to be missing.
            resources: names that the kubelet knows from before; they are served with nothing in them.
        """
        refusal: tuple[Problem, ...] = ()
        if assignment is not None:
            wanted = self._try(assignment, inventory)
            if isinstance(wanted, _Candidate) and not wanted.problems:
                return _decision(wanted, wanted.source, resources)
            refusal = wanted.problems if isinstance(wanted, _Candidate) else wanted
        before = self._candidate(in_force, inventory) if in_force else None
        if isinstance(before, _Candidate):
            # Should it not fit any more (an index whose GPU is gone), its pools are the devices unshared.
            return _decision(before, in_force, resources, refusal=refusal or before.problems)
        strategy = assignment.mig_strategy if assignment is not None else ""
        return _decision(self._plain(strategy, inventory), None, resources, refusal=refusal)

    def _try(self, assignment: Assignment, inventory: Inventory | None) -> _Candidate | tuple[Problem, ...]:
        if assignment.problem is not None:
            return (assignment.problem,)
        wanted = LastGood(
            content=assignment.content, mig_strategy=assignment.mig_strategy, name=assignment.name, config=None
        )
        return self._candidate(wanted, inventory)

    def _candidate(self, source: LastGood, inventory: Inventory | None) -> _Candidate | tuple[Problem, ...]:
        parsed = self._parse(source.content)
        if parsed.config is None:
            return parsed.problems
        return self._build(replace(source, config=parsed.config), parsed.config, inventory, parsed.warnings)

    def _plain(self, mig_strategy: str, inventory: Inventory | None) -> _Candidate:
        source = LastGood(content="", mig_strategy=mig_strategy, config=None)
        return self._build(source, SharingConfig(), inventory, ())

    def _build(
        self, source: LastGood, config: SharingConfig, inventory: Inventory | None, warnings: tuple[Problem, ...]
    ) -> _Candidate:
        settled = settings.settle(self._options, config, source.mig_strategy)
        responses = settings.read_response_options(settled, self._files)
        missing = settings.find_missing_channels(settled, responses)
        is_required = settled.config.imex.required
        built = building.build_pools(inventory or Inventory(), settled.config, settled.mig_strategy)
        problems = (*(missing if is_required else ()), *built.problems)
        if problems and not built.problems:
            built = building.build_pools(inventory or Inventory(), SharingConfig(), settled.mig_strategy)
        about_devices = (*built.unserved, *built.warnings) if inventory is not None else ()
        return _Candidate(
            source=source,
            settings=settled,
            responses=responses,
            pools=built.pools,
            fractions=built.fractions,
            problems=problems,
            notes=(*(missing if not is_required else ()), *warnings, *about_devices),
        )

    def _parse(self, content: str) -> ParsedSharing:
        if content not in self._read:
            # Two are of interest: the assigned one and the one in force.
            if len(self._read) > 1:
                self._read.pop(next(iter(self._read)))
            self._read[content] = parsing.parse_sharing(content)
        return self._read[content]


def _decision(
    candidate: _Candidate, in_force: LastGood | None, resources: Iterable[str], *, refusal: tuple[Problem, ...] = ()
) -> Decision:
    empty = {name: Pool(resource=name, base=name) for name in resources if name not in candidate.pools}
    return Decision(
        in_force=in_force,
        settings=candidate.settings,
        responses=candidate.responses,
        pools={**candidate.pools, **empty},
        fractions=candidate.fractions,
        refusal=refusal,
        notes=candidate.notes,
    )
