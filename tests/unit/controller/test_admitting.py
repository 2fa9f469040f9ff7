"""AdmissionReviews in, answers out."""

from __future__ import annotations

import json
from typing import Any

import pytest

from gpushare.controller.admitting import PATH, Admitting
from gpushare.serving.http import Request, Response
from support.snapshots import MAP, node, sharing_policy, snapshot, time_slicing

BROKEN = time_slicing(4).replace("replicas", "replica")
POLICIES = (sharing_policy("any"),)


def review(**data: str) -> dict[str, Any]:
    manifest = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": MAP}, "data": data}
    return {
        "apiVersion": "admission.k8s.io/v1",
        "kind": "AdmissionReview",
        "request": {"uid": "u-1", "operation": "CREATE", "object": manifest},
    }


async def ask(body: Any, *, path: str = PATH, **cluster: Any) -> Response:
    admitting = Admitting(lambda: snapshot(policies=POLICIES, **cluster))
    content = body if isinstance(body, bytes) else json.dumps(body).encode()
    return await admitting.answer(Request(method="POST", path=path, body=content))


async def response_of(body: Any) -> Any:
    answer = await ask(body)
    assert answer.status == 200
    assert isinstance(answer.body, bytes)
    answered = json.loads(answer.body)
    assert (answered["apiVersion"], answered["kind"]) == ("admission.k8s.io/v1", "AdmissionReview")
    return answered["response"]


async def test_allowed() -> None:
    """Nothing is said of what is right."""
    assert await response_of(review(any=time_slicing(4))) == {"uid": "u-1", "allowed": True}


async def test_refused() -> None:
    """A problem a line, as `gpushare validate` has it, and a code that tells clients that trying again is no use."""
    response = await response_of(review(any=BROKEN, other=""))

    assert not response["allowed"]
    assert (response["status"]["code"], response["status"]["reason"]) == (422, "Invalid")
    lines = response["status"]["message"].splitlines()
    assert 'unknown key; did you mean "replicas"?' in lines[0]
    assert lines[-1] == "other: it is empty; to share nothing, write `version: v1`"


async def test_many_problems() -> None:
    """The message stays readable."""
    response = await response_of(review(any=time_slicing(1), **{f"k{n}": "" for n in range(50)}))

    lines = response["status"]["message"].splitlines()
    assert len(lines) == 21
    assert lines[-1] == "and 30 more"


async def test_warned() -> None:
    """Warnings reach whoever applies it, in the length that the API server lets through."""
    response = await response_of(review(small=time_slicing(2)))
    assert response["allowed"]
    assert response["warnings"] == [
        'the policy names "any" as default, which this ConfigMap does not have: nodes keep what they have'
    ]

    nodes = tuple(node(f"{'x' * 100}{n}", config="none") for n in range(3))
    admitting = Admitting(lambda: snapshot(*nodes, policies=POLICIES))
    request = Request(method="POST", path=PATH, body=json.dumps(review(any=time_slicing(2))).encode())
    body = (await admitting.answer(request)).body
    assert isinstance(body, bytes)
    [warning] = json.loads(body)["response"]["warnings"]
    assert len(warning) == 250
    assert warning.endswith("...")


@pytest.mark.parametrize(
    ("body", "path", "status"),
    [
        pytest.param(b"{", PATH, 400, id="no JSON"),
        pytest.param({"request": {}}, PATH, 400, id="no object"),
        pytest.param([], PATH, 400, id="a list"),
        pytest.param(review() | {"apiVersion": "admission.k8s.io/v1beta1"}, PATH, 400, id="another version"),
        pytest.param(review(), "/other", 404, id="another path"),
    ],
)
async def test_nonsense(body: Any, path: str, status: int) -> None:
    """Whoever asks something else is told what is expected."""
    assert (await ask(body, path=path)).status == status
