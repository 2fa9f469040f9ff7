"""What has happened with the kubelet, in figures."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

from gpushare.kubelet.counting import BOUNDS, OK, Call, Counts, Durations

ALLOCATE = Call("nvidia.com/gpu", "Allocate", OK)


def test_calls_by_class() -> None:
    """A bound belongs to its class; what is longer than all of them has the last one."""
    counts = Counts()
    for seconds in (0.0, BOUNDS[0], BOUNDS[1], 60.0):
        counts.count_call(ALLOCATE, seconds)

    assert counts.calls() == {
        ALLOCATE: Durations(counts=(2, 1, *[0] * (len(BOUNDS) - 2), 1), seconds=BOUNDS[0] + BOUNDS[1] + 60.0)
    }


def test_registrations() -> None:
    """Those that worked and those that did not."""
    counts = Counts()
    counts.count_registration("a", succeeded=False)
    for _ in range(2):
        counts.count_registration("a", succeeded=True)

    assert counts.registrations() == {("a", False): 1, ("a", True): 2}


def test_nothing_is_lost_between_threads() -> None:
    """Calls are counted where they are answered."""
    counts = Counts()
    with ThreadPoolExecutor(4) as pool:
        for _ in range(4):
            pool.submit(lambda: [counts.count_call(ALLOCATE, 0.0) for _ in range(1000)])

    assert counts.calls()[ALLOCATE].counts[0] == 4000
