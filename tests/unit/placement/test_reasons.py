"""Codes and texts of reasons, and the page that explains them."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from gpushare.placement.reasons import MOST_LINES, TEXTS, Code, Reason, build_message, explain, shorten, whole_node

PAGE = Path(__file__).parents[3] / "docs" / "fractions.md"


def test_every_code_is_explained() -> None:
    """In words, and on the page, in the order in which they are checked."""
    _, _, rest = PAGE.read_text(encoding="utf-8").partition("## Why a pod does not fit")
    section, _, _ = rest.partition("\n## ")

    assert TEXTS.keys() == set(Code)
    assert re.findall(r"^\| `(\w+)` \|", section, re.MULTILINE) == [code.value for code in Code]


def test_message() -> None:
    """The numbers first, as HAMi writes them; a reason of the whole node has none."""
    reasons = [Reason(Code.MEMORY, 2, 4), Reason(Code.SLOTS, 1, 4)]

    assert build_message(reasons) == "2/4 CardInsufficientMemory, 1/4 CardTimeSlicingExhausted"
    assert build_message([whole_node(Code.AGENT_NOT_READY)]) == "AgentNotReady"


@pytest.mark.parametrize(
    ("reason", "expected"),
    [
        pytest.param(Reason(Code.MEMORY, 2, 4), "2 of 4 GPUs: the GPU has too little free memory", id="GPUs"),
        pytest.param(whole_node(Code.AGENT_NOT_READY), "the agent on the node is not ready", id="node"),
    ],
)
def test_words(reason: Reason, expected: str) -> None:
    """What `explain` says of one pod."""
    assert explain(reason) == expected


def test_few_lines_stay() -> None:
    """With numbers, as long as there are few."""
    failed = {f"node-{number}": f"{number % MOST_LINES}/8 CardInsufficientMemory" for number in range(100)}

    assert shorten(failed) == failed


def test_many_lines_are_shortened() -> None:
    """Nodes that differ in numbers only say the same then."""
    failed = {f"node-{number}": f"{number}/99 CardInsufficientMemory, 1/99 CardCordoned" for number in range(99)}
    failed["other"] = "AgentNotReady"

    assert set(shorten(failed).values()) == {"CardInsufficientMemory, CardCordoned", "AgentNotReady"}
    assert shorten(failed).keys() == failed.keys()


def test_many_combinations_are_shortened() -> None:
    """The first code is left, of which there are not many."""
    codes = list(Code)[-5:]
    failed = {
        f"node-{one}-{two}-{three}": f"1/8 {one.value}, 2/8 {two.value}, 3/8 {three.value}"
        for one in codes
        for two in codes
        for three in codes
    }

    assert set(shorten(failed).values()) == {code.value for code in codes}
