"""The walk-through's engine: what counts as a surprise, and that a surprise ends it with 1."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from gpushare.sandbox.tour import engine
from gpushare.sandbox.tour.engine import Answer, Step, Type, find_surprise


@pytest.mark.parametrize(
    ("shows", "output", "expected"),
    [
        pytest.param("a b", "a     b", True, id="any white space"),
        pytest.param("a b", "ab", False, id="but some"),
        pytest.param("gpu: 4 ... gpu: 4", "gpu:  4\nx\ngpu: 4\n", True, id="in this order, with things between"),
        pytest.param("gpu: 4 ... gpu: 4", "gpu: 4\n", False, id="twice means twice"),
        pytest.param("nvidia.com/gpu", "nvidiaXcom/gpu", False, id="a dot is a dot"),
        pytest.param("Tesla-T4 ", "Tesla-T4-SHARED\n", False, id="a space at the end ends the word"),
        pytest.param("Tesla-T4 ", "Tesla-T4\n", True, id="the end of a line is a space"),
    ],
)
def test_pattern(shows: str, output: str, expected: bool) -> None:
    """Texts are matched as a person reads them."""
    assert (engine.pattern_of(shows).search(output) is not None) is expected


@pytest.mark.parametrize(
    ("line", "answer", "expected"),
    [
        pytest.param(Type(line="x"), Answer(code=0, output=""), None, id="well"),
        pytest.param(Type(line="x"), Answer(code=3, output=""), "ended with 3", id="code"),
        pytest.param(Type(line="x", code=1), Answer(code=1, output=""), None, id="a failure that is expected"),
        pytest.param(Type(line="x", shows=("a",)), Answer(code=0, output="b"), "does not hold: a", id="missing"),
        pytest.param(Type(line="x", hides=("b",)), Answer(code=0, output="b"), "should not be", id="too much"),
    ],
)
def test_surprise(line: Type, answer: Answer, expected: str | None) -> None:
    """Each kind of surprise is named."""
    found = find_surprise(line, answer)

    assert found is None if expected is None else expected in (found or "")


@pytest.mark.parametrize(
    ("lines", "code", "last"),
    [
        pytest.param((Type(line="echo hello", shows=("hello",)),), 0, "All 1 steps", id="as it should be"),
        pytest.param((Type(line="echo hello", shows=("bye",)),), 1, "NOT AS IT SHOULD BE", id="a surprise"),
        pytest.param((Type(line="test -e seen || { touch seen; exit 1; }", wait=True),), 0, "All 1", id="in a moment"),
        pytest.param((Type(line="ls cluster-policy.yaml"),), 0, "All 1 steps", id="example files are there"),
    ],
)
async def test_walk(tmp_path: Path, lines: tuple[Type, ...], code: int, last: str) -> None:
    """The walk ends with 0 only when every line was as it should be, and shows what it typed."""
    said: list[str] = []
    step = Step(title="a step", proves="something", lines=lines)

    assert code == await engine.walk([step], kubeconfig=tmp_path, say=said.append, stop=asyncio.Event())

    assert last in said[-1]
    assert f"$ {lines[0].line}" in said
