"""Texts that are no YAML, or endless YAML: the line where the mistake is, and what a person is to do about it."""

from __future__ import annotations

import pytest

from gpushare.api.parsing import parse_sharing


@pytest.mark.parametrize(
    ("text", "line", "message"),
    [
        pytest.param(
            "a: b: c",
            1,
            "cannot be read as YAML: mapping values are not allowed here; put text with a ':' in quotes, and check how this "
            "line is indented",
            id="no YAML",
        ),
        pytest.param(
            "a:\n  b: [1, {c: 2}\n  d: e\n",
            2,
            'cannot be read as YAML: the "[" of this line is never closed',
            id="bracket noticed at the next key",
        ),
        pytest.param(
            "a:\n  b: [1, {c: 2}\n", 2, 'cannot be read as YAML: the "[" of this line is never closed', id="bracket"
        ),
        pytest.param(
            "a: [\n  {b: 1\n\n", 2, 'cannot be read as YAML: the "{" of this line is never closed', id="brace"
        ),
        pytest.param(
            "a:\n    b: 1\n  c: 2\n",
            3,
            "cannot be read as YAML: expected <block end>, but found '<block mapping start>'; indent this line like those "
            "that it belongs with",
            id="indentation",
        ),
        pytest.param(
            "a: 1\nbc\nd: 2\n",
            2,
            "cannot be read as YAML: could not find expected ':' after this line's first word",
            id="key without a colon",
        ),
        pytest.param("a: 1\n# \x07\n", 2, "holds the control character #x07; remove it", id="control character"),
        pytest.param(
            "version: v1\nflags:\n  migStrategy:\u00a0none\nsharing: {}\n",
            3,
            "holds a space that only looks like one, as copied from a web page; type it again",
            id="no-break space for a space",
        ),
        pytest.param(
            "flags:\n\u00a0\u00a0migStrategy: none\n",
            2,
            "holds a space that only looks like one, as copied from a web page; type it again",
            id="no-break spaces as indentation",
        ),
        pytest.param("flags:\n\tmigStrategy: none", 2, "a tab cannot indent YAML; use spaces", id="tab"),
        pytest.param("x: *gone", 1, "cannot be read as YAML: found undefined alias 'gone'", id="alias"),
        pytest.param(
            "x: !!python/name:os.system",
            1,
            '"!!python/name:os.system" is a tag, and none is taken here; remove it',
            id="tag",
        ),
    ],
)
def test_no_yaml(text: str, line: int, message: str) -> None:
    """One problem, since nothing after it can be understood."""
    parsed = parse_sharing(text)

    assert parsed.config is None
    assert [(problem.path, problem.line, problem.message) for problem in parsed.problems] == [("", line, message)]


def test_odd_spaces_where_they_do_no_harm() -> None:
    """In comments and between quotes, people may write what they like."""
    parsed = parse_sharing('version: v1  # so\u00a0so\nflags: {mpsRoot: "/a\u00a0b"}\n')

    assert parsed.problems == ()


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("a: &a [*a]\n", id="list that holds itself"),
        pytest.param("sharing: &a {timeSlicing: *a}\n", id="mapping that holds itself"),
        pytest.param("x: &a {<<: *a, b: 1}\n", id="merge with itself"),
        pytest.param(
            "x0: &x0 [1, 1]\n" + "".join(f"x{n}: &x{n} [*x{n - 1}, *x{n - 1}]\n" for n in range(1, 60)),
            id="aliases of aliases",
        ),
        pytest.param(
            "x0: &x0 {a: 1}\n" + "".join(f"x{n}: &x{n} {{<<: [*x{n - 1}, *x{n - 1}]}}\n" for n in range(1, 60)),
            id="merges of merges",
        ),
        pytest.param(
            "x0: &x0 [1, 1]\n"
            + "".join(f"x{n}: &x{n} [*x{n - 1}, *x{n - 1}]\n" for n in range(1, 60))
            + "? *x59\n: [1]\n",
            id="key of aliases",
        ),
    ],
)
def test_aliases_cannot_exhaust_it(text: str) -> None:
    """Texts that unfold to more than any memory holds are refused like any other."""
    parsed = parse_sharing(text)

    assert parsed.config is None
    assert parsed.problems
