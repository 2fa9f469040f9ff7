"""Expressions: what they give, and what is said about those that give nothing."""

from __future__ import annotations

import pytest

from gpushare.sandbox.apiserver.validation import expressions
from gpushare.sandbox.apiserver.validation.expressions import ExpressionError

POD = {
    "metadata": {"name": "train", "labels": {"a/b": "c"}},
    "spec": {"containers": [{"name": "one", "resources": {"limits": {"nvidia.com/gpumem": "10"}}}, {"name": "two"}]},
}
VARIABLES: dict[str, object] = {
    "object": POD,
    "oldObject": None,
    "request": {"userInfo": {"extra": {"x/node": ["n1"]}}},
}


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        pytest.param("object.metadata.name == 'train'", True, id="a field"),
        pytest.param("oldObject == null", True, id="no object"),
        pytest.param("has(object.spec.nodeName)", False, id="a field that is not there"),
        pytest.param("object.spec.?nodeName.orValue('none')", "none", id="an optional field"),
        pytest.param("request.userInfo.extra[?'x/node'][?0].orValue('')", "n1", id="an optional key"),
        pytest.param("'a/b' in object.metadata.labels", True, id="a key with a slash"),
        pytest.param("object.missing == 1 || true", True, id="an error that does not matter"),
        pytest.param(
            "object.spec.containers.exists(c, c.?resources.limits.orValue({}).exists(k, k.startsWith('nvidia.com/')))",
            True,
            id="limits of some container",
        ),
        pytest.param("object.spec.containers.map(c, c.name).join(' and ')", "one and two", id="a list becomes a text"),
        pytest.param("size(object.spec.containers) + 1", 3, id="a number"),
        pytest.param("cel.bind(n, object.metadata.name, n + n)", "traintrain", id="a name for a part"),
        pytest.param("object.spec.containers[1]", {"name": "two"}, id="an object"),
    ],
)
def test_evaluate(expression: str, expected: object) -> None:
    """Values of JSON go in and come out."""
    assert expressions.evaluate(expression, VARIABLES) == expected


@pytest.mark.parametrize(
    ("expression", "said"),
    [
        pytest.param("object.spec.", "Syntax error", id="half an expression"),
        pytest.param("'a' + 1", "no matching overload", id="types that do not go together"),
        pytest.param("params.x", "undeclared reference to 'params.x'", id="a variable that is not there"),
        pytest.param("quantity('1Gi').isGreaterThan(quantity('1'))", "undeclared reference", id="not of this server"),
    ],
)
def test_check(expression: str, said: str) -> None:
    """What does not compile is known before anything is to be judged."""
    with pytest.raises(ExpressionError, match=said):
        expressions.check(expression, VARIABLES)
    with pytest.raises(ExpressionError, match=said):
        expressions.evaluate(expression, VARIABLES)


@pytest.mark.parametrize(
    ("expression", "said"),
    [
        pytest.param("object.missing == 1", 'Key not found in map : "missing"', id="no such field"),
        pytest.param("oldObject.metadata.name == 'x'", "non-message type", id="a field of null"),
        pytest.param("object.metadata.name + size(object)", "No matching overloads", id="a text and a number"),
        pytest.param("object.?spec", "no value of JSON", id="an optional value itself"),
    ],
)
def test_failures(expression: str, said: str) -> None:
    """An expression that fails is an error, neither true nor false."""
    expressions.check(expression, VARIABLES)
    with pytest.raises(ExpressionError, match=said) as caught:
        expressions.evaluate(expression, VARIABLES)
    assert not str(caught.value).startswith(("NOT_FOUND", "INVALID", "UNKNOWN")), "words of the library"
