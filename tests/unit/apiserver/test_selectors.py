"""Label and field selectors."""

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
