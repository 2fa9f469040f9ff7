"""Label selectors of workloads."""

from __future__ import annotations

import pytest

from gpushare.sandbox.loops import selectors


def expression(operator, *values):
    return {"matchExpressions": [{"key": "size", "operator": operator, "values": list(values)}]}


@pytest.mark.parametrize(
    ("selector", "labels", "expected"),
    [
        pytest.param({}, {"a": "b"}, True, id="an empty one takes everything"),
        pytest.param({"matchLabels": {"a": "b"}}, {"a": "b", "c": "d"}, True, id="label"),
        pytest.param({"matchLabels": {"a": "b"}}, {"a": "x"}, False, id="other value"),
        pytest.param({"matchLabels": None, "matchExpressions": None}, {}, True, id="nulls"),
        pytest.param(expression("In", "1", "2"), {"size": "2"}, True, id="In"),
        pytest.param(expression("In", "1"), {}, False, id="In without the label"),
        pytest.param(expression("NotIn", "1"), {}, True, id="NotIn without the label"),
        pytest.param(expression("NotIn", "1"), {"size": "1"}, False, id="NotIn"),
        pytest.param(expression("Exists"), {"size": ""}, True, id="Exists"),
        pytest.param(expression("DoesNotExist"), {"size": ""}, False, id="DoesNotExist"),
        pytest.param(expression("Gt", "5"), {"size": "10"}, True, id="Gt compares numbers"),
        pytest.param(expression("Gt", "5"), {"size": "ten"}, False, id="Gt of a word"),
        pytest.param(expression("Lt", "-5"), {"size": "-10"}, True, id="Lt"),
        pytest.param(expression("Near", "5"), {"size": "5"}, False, id="unknown operator"),
    ],
)
def test_is_match(selector, labels, expected):
    """A selector takes what Kubernetes would take."""
    assert selectors.is_match(selector, labels) is expected
