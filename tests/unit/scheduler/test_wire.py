"""The protocols of kube-scheduler and of the API server, as bytes."""

from __future__ import annotations

import base64
import contextlib
import json
from typing import Any

import hypothesis.strategies as st
import pytest
from hypothesis import given, settings

from gpushare.scheduler import reviews, wire
from gpushare.scheduler.reviews import Refusal, Review, Verdict
from gpushare.scheduler.wire import BadCall, Victims

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                ["Pod", "NodeNames", "Nodes", "items", "metadata", "name", "request", "object", "uid", "Pods"]
            ),
            inner,
            max_size=4,
        )
    ),
    max_leaves=12,
)


@settings(max_examples=300, deadline=None)
@given(JSON)
def test_any_json(value: Any) -> None:
    """A call is read, or is refused in words; nothing else comes of it."""
    body = json.dumps(value).encode()
    for read in (wire.read_nodes_call, wire.read_bind_call, wire.read_preempt_call, reviews.read_review):
        with contextlib.suppress(BadCall, reviews.BadReview):
            read(body)


def test_victims_in_both_forms() -> None:
    """Whole pods, or only their uids."""
    pod = {"metadata": {"name": "a"}}
    whole = {"Pod": pod, "NodeNameToVictims": {"n": {"Pods": [{"metadata": {"uid": "1"}}], "NumPDBViolations": 2}}}
    meta = {"pod": pod, "nodeNameToMetaVictims": {"n": {"pods": [{"uid": "1"}], "numPDBViolations": 2}}}

    for call in (whole, meta):
        assert wire.read_preempt_call(json.dumps(call).encode()).victims == {"n": Victims(uids=("1",), violations=2)}


@pytest.mark.parametrize(
    ("before", "after", "patch"),
    [
        pytest.param({"a": 1}, {"a": 1}, [], id="equal"),
        pytest.param({}, {"a/b~c": 1}, [{"op": "add", "path": "/a~1b~0c", "value": 1}], id="added, escaped"),
        pytest.param({"a": 1}, {}, [{"op": "remove", "path": "/a"}], id="removed"),
        pytest.param({"a": {"b": 1}}, {"a": {"b": 2}}, [{"op": "replace", "path": "/a/b", "value": 2}], id="deep"),
        pytest.param({"a": [1]}, {"a": [1, 2]}, [{"op": "add", "path": "/a/-", "value": 2}], id="appended"),
        pytest.param({"a": [1, 2]}, {"a": [2]}, [{"op": "replace", "path": "/a", "value": [2]}], id="shorter"),
        pytest.param(
            {"a": [{"b": 1}]}, {"a": [{"b": 2}]}, [{"op": "replace", "path": "/a/0/b", "value": 2}], id="in a list"
        ),
    ],
)
def test_patches(before: Any, after: Any, patch: list[Any]) -> None:
    """JSON patches that change no more than they must."""
    assert list(reviews.build_patch(before, after)) == patch


def test_answers_to_reviews() -> None:
    """Allowed with a patch, allowed as it is, refused."""
    pod = {"kind": "Pod", "spec": {}}
    review = Review(uid="7", operation="CREATE", namespace="default", pod=pod)

    def answer(verdict: Verdict) -> dict[str, Any]:
        written = json.loads(reviews.write_review(review, verdict))
        assert (written["apiVersion"], written["kind"]) == ("admission.k8s.io/v1", "AdmissionReview")
        assert written["response"].pop("uid") == "7"
        return dict(written["response"])

    changed = answer(Verdict(pod={**pod, "spec": {"a": 1}}, warnings=["look"]))
    assert json.loads(base64.b64decode(changed.pop("patch"))) == [{"op": "add", "path": "/spec/a", "value": 1}]
    assert changed == {"allowed": True, "patchType": "JSONPatch", "warnings": ["look"]}
    assert answer(Verdict(pod=pod)) == {"allowed": True}
    assert answer(Verdict(pod=pod, refusal=Refusal(message="no"))) == {
        "allowed": False,
        "status": {"status": "Failure", "code": 403, "reason": "Forbidden", "message": "no"},
    }


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"[]",
        b'{"apiVersion": "admission.k8s.io/v1beta1", "request": {"uid": "1", "operation": "CREATE", "object": {"kind": "Pod"}}}',
        b'{"apiVersion": "admission.k8s.io/v1", "request": {"uid": "1", "operation": "CREATE", "object": {"kind": "Job"}}}',
    ],
    ids=["nothing", "a list", "an old version", "another kind"],
)
def test_no_reviews(body: bytes) -> None:
    """Refused before anything is read off them."""
    with pytest.raises(reviews.BadReview):
        reviews.read_review(body)
