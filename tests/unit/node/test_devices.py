"""The device manager's decisions, without any socket."""

from __future__ import annotations

import hypothesis.strategies as st
import pytest
from hypothesis import given

from gpushare.sandbox.node.devices import AllocationRefused, Choice, Counts, DeviceBook

GPU = "nvidia.com/gpu"


def book_of(*ids: str, prefers: bool = True, sick: tuple[str, ...] = ()) -> DeviceBook:
    """A book in which one plugin announces these devices."""
    book = DeviceBook(grace=300)
    generation = book.register(GPU, prefers=prefers)
    book.announce(GPU, generation, {**dict.fromkeys(ids, True), **dict.fromkeys(sick, False)})
    return book


def counts(book: DeviceBook) -> tuple[int, int]:
    found = book.counts()[GPU]
    return found.capacity, found.allocatable


def give(book: DeviceBook, pod: str, size: int, *, preferred: tuple[str, ...] = ()) -> tuple[str, ...]:
    choice = book.request(pod, "main", GPU, size)
    assert choice is not None
    ids = choice.take(preferred)
    book.commit(pod, "main", GPU, ids)
    return ids


def test_sick_devices_count_in_the_capacity_only() -> None:
    """Capacity is all devices, allocatable the healthy ones."""
    assert counts(book_of("a", "b", sick=("c",))) == (3, 2)


def test_a_list_that_says_nothing_new_changes_nothing() -> None:
    """The Node is written for changes only."""
    book = DeviceBook()
    generation = book.register(GPU, prefers=False)

    assert book.announce(GPU, generation, {"a": True})
    assert not book.announce(GPU, generation, {"a": True})
    assert book.announce(GPU, generation, {"a": False})


def test_a_plugin_that_goes_leaves_its_capacity_for_a_while() -> None:
    """Nothing of it can be given out at once; after the grace period the resource is shown as 0, not left out."""
    book = DeviceBook(grace=300)
    generation = book.register(GPU, prefers=False)
    book.announce(GPU, generation, {"a": True, "b": True})

    assert book.disconnect(GPU, generation, now=10)
    assert counts(book) == (2, 0)
    assert not book.expire(now=309)
    assert book.expire(now=310)
    assert book.counts() == {GPU: Counts()}
    assert not book.serves(GPU)


def test_a_new_plugin_takes_the_place_of_the_old() -> None:
    """What the old one still sends, and its end, do not disturb the new one."""
    book = DeviceBook()
    old = book.register(GPU, prefers=False)
    book.announce(GPU, old, {"a": True})
    new = book.register(GPU, prefers=True)
    book.announce(GPU, new, {"b": True, "c": True})

    assert not book.announce(GPU, old, {"a": True})
    assert not book.disconnect(GPU, old, now=0)
    assert counts(book) == (2, 2)


@pytest.mark.parametrize(
    ("size", "message"),
    [
        pytest.param(
            3,
            f"requested number of devices unavailable for {GPU}. Requested: 3, Available: 2",
            id="more than there are",
        ),
        pytest.param(
            99, f"requested number of devices unavailable for {GPU}. Requested: 99, Available: 2", id="far more"
        ),
    ],
)
def test_too_many(size: int, message: str) -> None:
    """The text is the kubelet's, letter for letter."""
    with pytest.raises(AllocationRefused) as refused:
        book_of("a", "b", sick=("c",)).request("pod", "main", GPU, size)
    assert str(refused.value) == message


def test_given_devices_are_not_free() -> None:
    """A second pod gets what the first has left, and everything once that has ended."""
    book = book_of("a", "b")
    assert give(book, "one", 1) == ("a",)
    with pytest.raises(AllocationRefused, match=r"Requested: 2, Available: 1"):
        book.request("two", "main", GPU, 2)

    assert book.release("one")
    assert give(book, "two", 2) == ("a", "b")
    assert not book.release("one")


def test_nothing_healthy() -> None:
    """A resource without a healthy device says so, as a kubelet does."""
    with pytest.raises(AllocationRefused) as refused:
        book_of(sick=("a",)).request("pod", "main", GPU, 1)
    assert str(refused.value) == f"no healthy devices present; cannot allocate unhealthy devices {GPU}"


def test_unknown_resource() -> None:
    """Only resources that a plugin serves, or that were given out, are the device manager's business."""
    book = book_of("a")
    assert not book.serves("example.com/other")
    with pytest.raises(AllocationRefused, match=r"cannot allocate unregistered device example\.com/other"):
        book.request("pod", "main", "example.com/other", 1)


@pytest.mark.parametrize(
    ("preferred", "expected"),
    [
        pytest.param((), ("a", "b"), id="no preference: by id"),
        pytest.param(("d", "c"), ("d", "c"), id="preferred"),
        pytest.param(("d",), ("d", "a"), id="too few preferred: filled up"),
        pytest.param(("x", "d", "d"), ("d", "a"), id="nonsense is passed over"),
        pytest.param(("d", "c", "b"), ("d", "c"), id="too many preferred: the first"),
    ],
)
def test_preference(preferred: tuple[str, ...], expected: tuple[str, ...]) -> None:
    """The plugin's wish counts as far as it can be met."""
    choice = book_of("a", "b", "c", "d").request("pod", "main", GPU, 2)
    assert choice is not None
    assert choice.take(preferred) == expected


def test_devices_of_init_containers_are_used_again() -> None:
    """They must be in the next container's set, and only what is missing comes from the free ones."""
    book = book_of("a", "b", "c")
    book.commit("pod", "init", GPU, ["b"])
    choice = book.request("pod", "main", GPU, 2, reusable=["b"])

    assert choice is not None
    assert choice.must_include == {"b"}
    assert choice.take(["c"]) == ("b", "c")
    enough = book.request("pod", "main", GPU, 1, reusable=["b"])
    assert enough is not None
    assert not enough.asks_plugin


def test_plugins_are_asked_only_when_they_want_to_be() -> None:
    """Without GetPreferredAllocation the kubelet chooses alone."""
    choice = book_of("a", prefers=False).request("pod", "main", GPU, 1)
    assert choice is not None
    assert not choice.asks_plugin


def test_a_container_that_has_its_devices_gets_no_others() -> None:
    """Asking again, as after a restart, changes nothing; asking for another number is refused."""
    book = book_of("a", "b", "c")
    give(book, "pod", 2)

    assert book.request("pod", "main", GPU, 2) is None
    with pytest.raises(AllocationRefused, match="changed request for resource"):
        book.request("pod", "main", GPU, 1)


def test_restart() -> None:
    """What was given survives; every resource counts 0 until its plugin is back, and then free means free."""
    book = book_of("a", "b", "c")
    give(book, "pod", 2)
    again = DeviceBook.from_json(book.to_json(), now=0, grace=300)

    assert counts(again) == (0, 0)
    assert again.serves(GPU)
    with pytest.raises(AllocationRefused, match="no healthy devices present"):
        again.request("other", "main", GPU, 1)
    again.announce(GPU, again.register(GPU, prefers=True), dict.fromkeys("abc", True))
    assert give(again, "other", 1) == ("c",)
    assert [(holding.pod_uid, holding.ids) for holding in again.holdings()] == [("pod", ("a", "b")), ("other", ("c",))]


IDS = st.sets(st.sampled_from("abcdefgh"), max_size=8)


@given(free=IDS, must=IDS, preferred=st.lists(st.sampled_from("abcdefghxyz")), size=st.integers(0, 8))
def test_a_choice_is_always_as_large_as_asked(free: set[str], must: set[str], preferred: list[str], size: int) -> None:
    """Exactly so many different devices, all of them available, with all that must be."""
    available = free | must
    size = min(size, len(available))
    must = set(sorted(must)[:size])
    choice = Choice(
        resource=GPU, size=size, available=frozenset(available), must_include=frozenset(must), asks_plugin=True
    )
    taken = choice.take(preferred)

    assert len(taken) == len(set(taken)) == size
    assert must <= set(taken) <= available


@given(st.lists(st.tuples(st.sampled_from("pqrs"), st.integers(1, 3)), max_size=12))
def test_no_device_is_given_twice(steps: list[tuple[str, int]]) -> None:
    """Whatever pods come and go: who asks gets free devices or a refusal."""
    book = book_of(*"abcde")
    for pod, size in steps:
        if not book.release(pod):
            try:
                give(book, pod, size)
            except AllocationRefused:
                continue
        given_out = [id_ for holding in book.holdings() for id_ in holding.ids]
        assert len(given_out) == len(set(given_out))
