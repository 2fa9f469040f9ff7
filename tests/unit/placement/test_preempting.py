"""Who would have to go, by GPU."""

from __future__ import annotations

import pytest

from gpushare.placement.gpus import Use
from gpushare.placement.preempting import Removable, choose_victims
from gpushare.placement.quotas import Quota
from support.placements import alike, hami, request_of


def pod(uid: str, priority: int = 0, started: str = "2026-01-01T00:00:00Z") -> Removable:
    return Removable(uid=uid, priority=priority, started=started)


def holdings(**pods: tuple[int, int]) -> dict[str, tuple[int, int]]:
    """Number of the GPU and GiB of each pod."""
    return pods


@pytest.mark.parametrize(
    ("pods", "removable", "wanted", "expected"),
    [
        pytest.param(holdings(a=(0, 3)), [pod("a")], 1, [], id="it fits as it is"),
        pytest.param(holdings(a=(0, 15), b=(1, 15)), [pod("a", 5), pod("b", 3)], 10, ["b"], id="the least important"),
        pytest.param(holdings(a=(0, 15), b=(1, 15)), [pod("a", 5)], 10, ["a"], id="only those that may be removed"),
        pytest.param(holdings(a=(0, 15), b=(1, 15)), [], 10, None, id="nobody may be removed"),
        pytest.param(holdings(a=(0, 8), b=(1, 8)), [pod("a")], 16, None, id="too large even for an empty GPU"),
        pytest.param(
            holdings(a=(0, 15), b=(1, 8), c=(1, 7)),
            [pod("a"), pod("b"), pod("c")],
            10,
            ["a"],
            id="one rather than two of equals",
        ),
        pytest.param(
            holdings(a=(0, 15), b=(1, 8), c=(1, 7)),
            [pod("a", 9), pod("b", 1), pod("c", 1)],
            12,
            ["b", "c"],
            id="two of no importance",
        ),
        pytest.param(
            holdings(a=(0, 8), b=(0, 7), c=(1, 15)),
            [pod("a"), pod("b"), pod("c", 9)],
            8,
            ["a"],
            id="no more than needed",
        ),
        pytest.param(
            holdings(a=(0, 15), b=(1, 15)),
            [pod("a", started="2026-01-02T00:00:00Z"), pod("b", started="2026-01-01T00:00:00Z")],
            10,
            ["a"],
            id="who has run longer stays",
        ),
        pytest.param(
            holdings(a=(0, 15), b=(1, 15)), [pod("a", 3), pod("b", 1), pod("x", 0)], 10, ["b"], id="a stranger is none"
        ),
    ],
)
def test_victims(
    pods: dict[str, tuple[int, int]], removable: list[Removable], wanted: int, expected: list[str] | None
) -> None:
    """On two GPUs of 15 GiB: the fewest of the least important, all on GPUs where it helps."""
    node = alike(2)
    for uid, (gpu, gib) in pods.items():
        node = node.with_pod(uid, {f"GPU-node-{gpu}": Use(gib * 1024, 0, 1)})

    victims = choose_victims(node, request_of(hami(gpus=1, mem=wanted * 1024)), removable)
    assert (victims if victims is None else sorted(victim.uid for victim in victims)) == expected


def test_several_gpus() -> None:
    """A pod with two GPUs takes what it needs on both."""
    node = alike(3)
    for uid, gpu in (("a", 0), ("b", 1), ("c", 2)):
        node = node.with_pod(uid, {f"GPU-node-{gpu}": Use(15360, 0, 1)})
    removable = [pod("a", 3), pod("b", 1), pod("c", 2)]

    victims = choose_victims(node, request_of(hami(gpus=2, mem=1024)), removable)
    assert victims is not None
    assert {victim.uid for victim in victims} == {"b", "c"}


def test_quota_is_no_matter_of_victims() -> None:
    """What a namespace may not have, nobody is removed for."""
    node = alike(1).with_pod("a", {"GPU-node-0": Use(15360, 0, 1)})

    assert choose_victims(node, request_of(hami(gpus=1, mem=1024)), [pod("a")], Quota(memory_mib=1000)) is None
