"""Label and field selectors."""

from typing import Any

import pytest

from gpushare.sandbox.apiserver import kinds
from gpushare.sandbox.apiserver.objects import selectors
from gpushare.sandbox.apiserver.statuses import ApiError

KINDS = {resource.plural: resource for resource in kinds.built_in() if resource.view is None}


@pytest.mark.parametrize(
    ("text", "labels", "chosen"),
    [
        pytest.param("a=b", {"a": "b"}, True, id="equal"),
        pytest.param("a==b", {"a": "c"}, False, id="double equal"),
        pytest.param("a!=b", {}, True, id="not equal without the label"),
        pytest.param("a", {"a": ""}, True, id="exists"),
        pytest.param("!a", {"a": ""}, False, id="does not exist"),
        pytest.param("a in (b,c),!d", {"a": "c"}, True, id="in and absent"),
        pytest.param("a notin (b, c)", {"a": "b"}, False, id="not in"),
        pytest.param("a=", {"a": ""}, True, id="empty value"),
        pytest.param("x.io/n>3", {"x.io/n": "4"}, True, id="greater"),
        pytest.param("x.io/n<3", {"x.io/n": "four"}, False, id="not a number"),
    ],
)
def test_labels(text: str, labels: dict[str, str], chosen: bool) -> None:
    """What kubectl's -l takes chooses what it says."""
    assert selectors.holds(selectors.parse_labels(text), labels) is chosen


@pytest.mark.parametrize(
    ("text", "message"),
    [
        pytest.param("a b", "found 'b', expected: in, notin, =, ==, !=, gt, lt", id="two words"),
        pytest.param("a in b", r"found 'b', expected: '\('", id="no list"),
        pytest.param("a=b,", "found '', expected: identifier after ','", id="comma at the end"),
        pytest.param("a=b/c", 'Invalid value: "b/c"', id="bad value"),
    ],
)
def test_malformed_labels(text: str, message: str) -> None:
    """A malformed selector is refused, never taken for one that chooses nothing."""
    with pytest.raises(ApiError, match=message) as refused:
        selectors.parse_labels(text)
    assert refused.value.code == 400


@pytest.mark.parametrize(
    ("plural", "text", "obj", "chosen"),
    [
        pytest.param("pods", "spec.nodeName=n", {"spec": {"nodeName": "n"}}, True, id="node of a pod"),
        pytest.param("pods", "spec.nodeName!=n,status.phase=Running", {"status": {"phase": "Running"}}, True, id="two"),
        pytest.param("nodes", "spec.unschedulable=false", {"spec": {}}, True, id="unset boolean"),
        pytest.param("configmaps", "metadata.name=a", {}, False, id="name"),
        pytest.param("events", "source=kubelet", {"source": {"component": "kubelet"}}, True, id="source of an event"),
    ],
)
def test_fields(plural: str, text: str, obj: dict, chosen: bool) -> None:
    """The fields that a kind offers select by their value."""
    selector = selectors.parse(KINDS[plural], {"fieldSelector": text})
    assert selector.matches({"metadata": {"name": "x"}, **obj}) is chosen


@pytest.mark.parametrize(
    ("plural", "text", "message"),
    [
        pytest.param("pods", "spec.bogus=1", "field label not supported: spec.bogus", id="of a kind with fields"),
        pytest.param(
            "configmaps", "data.a=1",
            '"data.a" is not a known field selector: only "metadata.name", "metadata.namespace"', id="of a kind without",
        ),
        pytest.param("pods", "nonsense", "invalid selector: 'nonsense'", id="no operator"),
    ],
)  # fmt: skip
def test_unknown_fields(plural: str, text: str, message: str) -> None:
    """A field that a kind does not offer is refused: a typo must not look like an empty list."""
    with pytest.raises(ApiError, match=message):
        selectors.parse(KINDS[plural], {"fieldSelector": text})


def test_text_of_a_selector() -> None:
    """A LabelSelector reads back as clients type it."""
    selector = {
        "matchLabels": {"b": "2", "a": "1"},
        "matchExpressions": [
            {"key": "c", "operator": "In", "values": ["x", "y"]},
            {"key": "d", "operator": "DoesNotExist"},
        ],
    }
    assert selectors.text(selector) == "a=1,b=2,c in (x,y),!d"
    assert selectors.holds(selectors.parse_object(selector), {"a": "1", "b": "2", "c": "y"})


def expression(operator: str, *values: str) -> dict[str, Any]:
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
        pytest.param(expression("Gt", "5"), {"size": "5"}, False, id="Gt of the same"),
        pytest.param(expression("Gt"), {"size": "5"}, False, id="Gt of nothing"),
        pytest.param(expression("Gt", "5"), {"size": "1_0"}, False, id="Gt of what only Python reads as a number"),
        pytest.param(expression("Lt", "-5"), {"size": "-10"}, True, id="Lt"),
        pytest.param(expression("Lt", "5"), {"size": "5"}, False, id="Lt of the same"),
        pytest.param(expression("Near", "5"), {"size": "5"}, False, id="unknown operator"),
    ],
)
def test_is_match(selector: dict[str, Any], labels: dict[str, str], expected: bool) -> None:
    """A selector of an object takes what Kubernetes would take."""
    assert selectors.is_match(selector, labels) is expected
