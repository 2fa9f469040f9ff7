"""Answers to the kubelet, and when they may be those of before."""

from __future__ import annotations

import pytest

from gpushare.agent import answering
from gpushare.agent.answering import Answering
from gpushare.api.sharing import IdStrategy
from gpushare.domain.devices import MigStrategy
from gpushare.domain.pools import Pool
from gpushare.kubelet.values import PreferenceRequest
from gpushare.sharing.building import build_pools
from gpushare.sharing.responses import RequestRefused, ResponseOptions
from support.inventories import entry, gpu, sliced, t4s

FIRST = f"{gpu(0).uuid}::0"


def pool(replicas: int, *, strict: bool = False) -> Pool:
    config = sliced(entry(replicas), fail_requests_greater_than_one=strict)
    return build_pools(t4s(2), config, MigStrategy.NONE).pools["nvidia.com/gpu"]


def visible(answers: Answering, pool: Pool, *ids: str) -> str:
    return answers.allocate(pool, ids).envs["NVIDIA_VISIBLE_DEVICES"]


def test_remembered_while_nothing_changes() -> None:
    """The very same answer; each grant is told all the same."""
    told: list[None] = []
    answers, offered = Answering(lambda: told.append(None)), pool(2)

    assert answers.allocate(offered, [FIRST]) is answers.allocate(offered, [FIRST])
    assert len(told) == 2


def test_new_options_and_pools_count_at_once() -> None:
    """What was remembered belongs to the old ones."""
    answers = Answering(lambda: None)
    assert visible(answers, pool(2), FIRST) == gpu(0).uuid

    answers.options = ResponseOptions(id_strategy=IdStrategy.INDEX)

    assert visible(answers, pool(2), FIRST) == "0"
    with pytest.raises(RequestRefused, match="unknown device"):
        answers.allocate(pool(1), [FIRST])


def test_refusals_are_not_remembered_as_grants() -> None:
    """Refused each time, and never told as a grant."""
    told: list[None] = []
    answers, offered = Answering(lambda: told.append(None)), pool(2, strict=True)

    for _ in range(2):
        with pytest.raises(RequestRefused, match="maximum request size for shared resources is 1; found 2"):
            answers.allocate(offered, [FIRST, f"{gpu(1).uuid}::0"])
    assert told == []


def test_memory_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """What does not fit is answered anew."""
    monkeypatch.setattr(answering, "MOST_REMEMBERED", 0)
    answers, offered = Answering(lambda: None), pool(2)

    first, second = answers.allocate(offered, [FIRST]), answers.allocate(offered, [FIRST])
    assert first == second
    assert first is not second


def test_prefer() -> None:
    """Spread over GPUs; nothing where nothing fits."""
    answers, offered = Answering(lambda: None), pool(2)
    available = tuple(offered.by_id)

    chosen = answers.prefer(offered, PreferenceRequest(available=available, size=2))

    assert {share.partition("::")[0] for share in chosen} == {gpu(0).uuid, gpu(1).uuid}
    assert answers.prefer(offered, PreferenceRequest(available=available, size=9)) == ()


def test_ghosts_are_left_alone() -> None:
    """A GPU with containers of an earlier configuration on it comes last, though the kubelet takes it for free."""
    answers, offered = Answering(lambda: None), pool(2)
    request = PreferenceRequest(available=tuple(offered.by_id), size=1)
    assert answers.prefer(offered, request) == (FIRST,)

    answers.ghosts = {0: 1}

    assert answers.prefer(offered, request) == (f"{gpu(1).uuid}::0",)
