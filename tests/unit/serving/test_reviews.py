"""AdmissionReviews and the patches that answer them, as bytes."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest

from gpushare.serving import reviews
from gpushare.serving.reviews import Refusal, Review, Verdict


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
    review = Review(uid="7", operation="CREATE", namespace="default", manifest=pod)

    def answer(verdict: Verdict) -> dict[str, Any]:
        written = json.loads(reviews.write_review(review, verdict))
        assert (written["apiVersion"], written["kind"]) == ("admission.k8s.io/v1", "AdmissionReview")
        assert written["response"].pop("uid") == "7"
        return dict(written["response"])

    changed = answer(Verdict(manifest={**pod, "spec": {"a": 1}}, warnings=["look"]))
    assert json.loads(base64.b64decode(changed.pop("patch"))) == [{"op": "add", "path": "/spec/a", "value": 1}]
    assert changed == {"allowed": True, "patchType": "JSONPatch", "warnings": ["look"]}
    assert answer(Verdict(manifest=pod)) == {"allowed": True}
    assert answer(Verdict(manifest=pod, refusal=Refusal(message="no"))) == {
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
        reviews.read_review(body, "Pod")
