"""Who may be on the way to a node together: whatever comes and goes, never two that can be told apart by nobody."""

from __future__ import annotations

import asyncio

import hypothesis.strategies as st
import pytest
from hypothesis import given, settings

from gpushare.scheduler.flights import Flights, Ticket

A, B = Ticket("a", is_uniform=True), Ticket("b", is_uniform=True)
MIXED = Ticket("a", is_uniform=False)


@pytest.mark.parametrize(
    ("one", "other", "together"),
    [
        pytest.param(A, A, True, id="replicas"),
        pytest.param(A, B, False, id="other shapes"),
        pytest.param(MIXED, MIXED, False, id="containers that differ"),
        pytest.param(A, MIXED, False, id="one of them"),
    ],
)
async def test_together(one: Ticket, other: Ticket, together: bool) -> None:
    """The second goes along, or waits until the deadline."""
    flights = Flights()
    await flights.wait("n", "1", one, 0)
    try:
        await flights.wait("n", "2", other, 0)
    except TimeoutError:
        assert not together
        assert flights.counts == (1, 0)
    else:
        assert together


async def test_all_that_wait_give_up_at_once() -> None:
    """As when a leader steps down: nobody is let aboard instead, and the next one finds nobody in its way."""
    flights, later = Flights(), asyncio.get_running_loop().time() + 60
    await flights.wait("n", "1", A, 0)
    waiting = [asyncio.create_task(flights.wait("n", uid, ticket, later)) for uid, ticket in (("2", B), ("3", MIXED))]
    await asyncio.sleep(0)
    for task in waiting:
        task.cancel()
    flights.leave("n", "1")
    await flights.wait("n", "4", A, later)

    assert [type(end) for end in await asyncio.gather(*waiting, return_exceptions=True)] == [asyncio.CancelledError] * 2
    assert (flights.aboard("n"), flights.counts) == ({"4"}, (1, 0))


async def test_one_that_gives_up_in_the_moment_it_is_let_aboard() -> None:
    """It takes nobody's place."""
    flights = Flights()
    await flights.wait("n", "1", A, 0)
    waiting = asyncio.create_task(flights.wait("n", "2", B, asyncio.get_running_loop().time() + 60))
    await asyncio.sleep(0)
    flights.leave("n", "1")
    waiting.cancel()
    await asyncio.wait({waiting})

    await flights.wait("n", "3", A, 0)
    assert flights.aboard("n") == {"3"}


@settings(max_examples=60)
@given(st.lists(st.tuples(st.sampled_from(["a", "b", "c"]), st.booleans(), st.booleans()), max_size=25))
def test_never_two_that_differ(steps: list[tuple[str, bool, bool]]) -> None:
    """Pods come (and wait) or leave at random: those aboard may always be taken for each other, and in the end all got there."""
    asyncio.run(_play(steps))


async def _play(steps: list[tuple[str, bool, bool]]) -> None:
    flights, tickets, arrived = Flights(), dict[str, Ticket](), set[str]()
    far = asyncio.get_running_loop().time() + 60
    tasks = []

    async def go(uid: str, ticket: Ticket) -> None:
        await flights.wait("n", uid, ticket, far)
        arrived.add(uid)

    def check() -> None:
        aboard = [tickets[uid] for uid in flights.aboard("n")]
        assert all(one.goes_with(other) for one in aboard for other in aboard) or len(aboard) == 1

    for number, (shape, uniform, leaves) in enumerate(steps):
        tickets[str(number)] = Ticket(shape, uniform)
        tasks.append(asyncio.create_task(go(str(number), tickets[str(number)])))
        await asyncio.sleep(0)
        if leaves and flights.aboard("n"):
            flights.leave("n", min(flights.aboard("n")))
            await asyncio.sleep(0)
        check()
    while len(arrived) < len(steps) or flights.aboard("n"):
        for uid in flights.aboard("n"):
            flights.leave("n", uid)
        await asyncio.sleep(0)
        check()
    await asyncio.gather(*tasks)
