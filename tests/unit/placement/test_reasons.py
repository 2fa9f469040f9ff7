"""Codes and texts of reasons, and the page that explains them."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from gpushare.placement.reasons import TEXTS, Code, Reason, build_message, explain, whole_node

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
