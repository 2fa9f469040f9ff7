"""Pools that change under a running agent."""

from __future__ import annotations

import hypothesis.strategies as st
from hypothesis import given

from gpushare.domain.pools import Pool
from gpushare.sharing.diffing import build_changes


def pools(**replicas: int) -> dict[str, Pool]:
    return {name: Pool(resource=name, base=name, replicas=count) for name, count in replicas.items()}


def test_nothing_to_do() -> None:
    """Equal pools disturb nobody."""
    assert build_changes(pools(gpu=4), pools(gpu=4)).is_empty


def test_each_kind_of_change() -> None:
    """One resource goes, one changes, one comes, one stays."""
    changes = build_changes(pools(gone=1, other=2, same=1), pools(other=4, same=1, new=1))

    assert changes.retire == {"gone"}
    assert changes.update == pools(other=4)
    assert changes.start == pools(new=1)


@given(*[st.dictionaries(st.sampled_from("abcd"), st.integers(1, 2)) for _ in range(2)])
def test_changes_lead_where_they_should(before: dict[str, int], after: dict[str, int]) -> None:
    """What is served, changed as told, is what was wanted."""
    served, wanted = pools(**before), pools(**after)
    changes = build_changes(served, wanted)

    kept = {name: pool for name, pool in served.items() if name not in changes.retire}
    assert kept | dict(changes.update) | dict(changes.start) == wanted
    assert changes.is_empty == (served == wanted)
