"""One pass of the agent: decide, hold back what would take from pods what they have, apply, remember."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from concurrent.futures import Executor
from dataclasses import replace
from typing import Final, TypeVar

from gpushare.agent import allocations
from gpushare.agent.deciding import Assignment, Decider, Decision
from gpushare.agent.memory import Memory
from gpushare.api.sharing import OnShrink
from gpushare.domain.devices import Inventory
from gpushare.errors import Problem
from gpushare.host.state import LastGood
from gpushare.kubelet.values import ContainerDevices

_NAMED: Final = 5
"""How many pods a refusal names."""

_UNKNOWN: Final = Problem(
    path="gpushare.fractions",
    message="parts of GPUs may be in use, and the kubelet does not tell by whom; the rest follows once it does",
)

T = TypeVar("T")


class Reconciler:
    """Carries out decisions. One pass at a time."""

    def __init__(
        self,
        decider: Decider,
        serve: Callable[[Decision, Inventory | None], Awaitable[Decision]],
        memory: Memory,
        executor: Executor,
        *,
        read_holders: Callable[[], Awaitable[Sequence[ContainerDevices] | None]],
    ) -> None:
        """Begins with the configuration that the memory holds. `serve` returns the decision as this host can have it.

        `read_holders` gives None while nobody knows who holds what.
        """
        self.decision: Decision | None = None
        """The last one, carried out."""
        self.is_held_back = False
        """Whether the assigned configuration waits for pods to go."""
        self._decider = decider
        self._serve = serve
        self._memory = memory
        self._executor = executor
        self._read_holders = read_holders
        if memory.state.last_good is not None:
            decider.know(memory.state.last_good)

    @property
    def has_last_good(self) -> bool:
        """Whether there is a configuration to start from."""
        return self._memory.state.last_good is not None

    async def reconcile(self, assignment: Assignment | None, inventory: Inventory | None) -> Decision:
        """Brings what is served to what should be served now."""
        decision = await self._decide(assignment, inventory)
        before = await self._before_shrinking(decision, inventory)
        self.is_held_back = False
        if before is not None:
            decision = await self._apply_unless_in_use(decision, before, inventory)
        else:
            decision = await self._apply(decision, inventory)
        self.decision = decision
        return decision

    async def _decide(self, assignment: Assignment | None, inventory: Inventory | None) -> Decision:
        # In a thread: the first text loads YAML and pydantic.
        state = self._memory.state
        return await self._in_thread(
            lambda: self._decider.decide(assignment, state.last_good, inventory, state.resources)
        )

    async def _before_shrinking(self, decision: Decision, inventory: Inventory | None) -> Decision | None:
        """What is in force until now, where the decided configuration must not take what is in use."""
        last_good = self._memory.state.last_good
        if last_good is None or not _differs(decision.in_force, last_good):
            return None
        before = await self._decide(None, inventory)
        is_careful = decision.settings.config.extension.on_shrink is OnShrink.REFUSE
        return before if is_careful or _ends_fractions(decision, before) else None

    async def _apply_unless_in_use(self, decision: Decision, before: Decision, inventory: Inventory | None) -> Decision:
        refused = self._refusal(await self._read_holders(), decision, before)
        if refused is None:
            decision = await self._apply(decision, inventory)
            # A pod may have been given what was just taken away; read again, since the kubelet has the new list by now.
            refused = self._refusal(await self._read_holders(), decision, before)
        if refused is None:
            return decision
        self.is_held_back = True
        return await self._apply(refused, inventory)

    def _refusal(
        self, known: Sequence[ContainerDevices] | None, decision: Decision, before: Decision
    ) -> Decision | None:
        if _ends_fractions(decision, before):
            problem = _double_use(known, decision) if known is not None else _UNKNOWN
            problems = [problem] if problem is not None else []
        else:
            problems = [
                Problem(path="gpushare.onShrink", message=message) for message in _shortages(known, decision, before)
            ]
        return replace(before, refusal=tuple(problems)) if problems else None

    async def _apply(self, decision: Decision, inventory: Inventory | None) -> Decision:
        self._remember(decision)
        return await self._serve(decision, inventory)

    def _remember(self, decision: Decision) -> None:
        state = self._memory.state
        resources = tuple(sorted({*state.resources, *decision.pools}))
        self._memory.remember_serving(decision.in_force or state.last_good, resources)

    async def _in_thread(self, function: Callable[[], T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._executor, function)


def _ends_fractions(decision: Decision, before: Decision) -> bool:
    return before.fractions is not None and decision.fractions is None


def _shortages(known: Sequence[ContainerDevices] | None, decision: Decision, before: Decision) -> Iterator[str]:
    """Where more is in use than would be left, or nobody knows how much is."""
    if known is None:
        for name, offered in sorted(allocations.find_shrinking(before.pools, decision.pools).items()):
            yield (
                f"the kubelet does not tell how many of {name} are in use, and only {offered} would be left; it follows once "
                "that is known, or with onShrink: keep"
            )
        return
    beyond = allocations.shrink_beyond(known, before.pools, decision.pools)
    for name, (in_use, offered) in sorted(beyond.items()):
        yield f"{in_use} of {name} are in use{_by(known, name)} and only {offered} would be left; delete pods first"


def _double_use(holders: Sequence[ContainerDevices], decision: Decision) -> Problem | None:
    """What is in the way while pods have parts of GPUs: the kubelet would give out the GPUs as if they were free.

    In whichever words they asked for them: the node may have changed its dialect since.
    """
    from gpushare.sharing.fractions import REQUESTED  # late: most agents never need it

    for resource in REQUESTED.values():
        offered = decision.pools[resource].by_id if resource in decision.pools else {}
        if any(share_id not in offered for holder in holders if holder.resource == resource for share_id in holder.ids):
            return Problem(
                path="gpushare.fractions",
                message=f"parts of GPUs are in use{_by(holders, resource)}, and the same GPUs would be given out beside "
                "them; delete pods first, and the rest follows",
            )
    return None


def _by(holders: Iterable[ContainerDevices], resource: str) -> str:
    """The pods that hold it, a few of them by name: those that people may have to delete."""
    pods = sorted(
        {f"{holder.namespace}/{holder.pod}" for holder in holders if holder.resource == resource and holder.ids}
    )
    more = f" and {len(pods) - _NAMED} more" if len(pods) > _NAMED else ""
    return f" by {', '.join(pods[:_NAMED])}{more}" if pods else ""


def _differs(one: LastGood | None, other: LastGood) -> bool:
    return one is None or (one.content, one.mig_strategy) != (other.content, other.mig_strategy)
