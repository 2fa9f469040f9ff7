"""Admission reviews (`admission.k8s.io/v1`), as the API server sends them to webhooks. Used by controller and scheduler."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

from gpushare.domain.manifests import Manifest
from gpushare.serving.http import JSON, Request, Response

_VERSION: Final = "admission.k8s.io/v1"
_LONGEST_WARNING: Final = 250
"""What is longer is cut by the API server."""


class BadReview(ValueError):  # noqa: N818 - the state is the name, as in `errors`
    """The body is no AdmissionReview; says why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Review:
    """What the API server asks about one object."""

    uid: str
    operation: str
    """`CREATE` or `UPDATE`; others are not registered for."""
    namespace: str
    manifest: Manifest
    before: Manifest | None = None
    """The stored object, where it is updated."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Refusal:
    """Why an object is not admitted, in words for whoever wrote it."""

    message: str
    code: int = 403
    reason: str = "Forbidden"


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """What is answered."""

    manifest: Manifest
    """As it should be; the reviewed one where nothing is to be changed."""
    refusal: Refusal | None = None
    warnings: Sequence[str] = ()
    """kubectl prints each."""


def answer(request: Request, kind: str, judge: Callable[[Review], Verdict]) -> Response:
    """Has the AdmissionReview of an object of a kind judged; 400 for what is none, which the API server takes for a failure."""
    try:
        review = read_review(request.body, kind)
    except BadReview as error:
        return Response(status=400, body=f"{error}\n".encode())
    return Response(body=write_review(review, judge(review)), content_type=JSON)


def read_review(body: bytes, kind: str) -> Review:
    """Reads an AdmissionReview of an object of that kind. Raises BadReview."""
    try:
        review = json.loads(body)
        request = review["request"]
        found = Review(
            uid=str(request["uid"]),
            operation=str(request["operation"]),
            namespace=str(request.get("namespace", "")),
            manifest=request["object"],
            before=request.get("oldObject") or None,
        )
        version = review["apiVersion"]
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        raise BadReview(f"no AdmissionReview of a {kind}: {error!r}") from error
    if version != _VERSION or not isinstance(found.manifest, dict) or found.manifest.get("kind") != kind:
        raise BadReview(f"expected an AdmissionReview of {_VERSION} about a {kind}")
    return found


def write_review(review: Review, verdict: Verdict) -> bytes:
    """The AdmissionReview that answers."""
    response: dict[str, Any] = {"uid": review.uid, "allowed": verdict.refusal is None}
    if verdict.refusal is not None:
        refusal = verdict.refusal
        response["status"] = {
            "status": "Failure",
            "code": refusal.code,
            "reason": refusal.reason,
            "message": refusal.message,
        }
    elif patch := list(build_patch(review.manifest, verdict.manifest)):
        response["patchType"] = "JSONPatch"
        response["patch"] = base64.b64encode(json.dumps(patch).encode()).decode()
    if verdict.warnings:
        response["warnings"] = [_cut(warning) for warning in verdict.warnings]
    return json.dumps({"apiVersion": _VERSION, "kind": "AdmissionReview", "response": response}).encode()


def build_patch(before: Any, after: Any, path: str = "") -> Iterator[dict[str, Any]]:
    """The operations of a JSON patch (RFC 6902) that make `after` of `before`; none where they are equal."""
    if before == after:
        return
    if isinstance(before, dict) and isinstance(after, dict):
        for name in before.keys() | after.keys():
            yield from _patch_member(before, after, name, f"{path}/{_escaped(name)}")
    elif isinstance(before, list) and isinstance(after, list) and len(before) <= len(after):
        for index, value in enumerate(after):
            if index < len(before):
                yield from build_patch(before[index], value, f"{path}/{index}")
            else:
                yield {"op": "add", "path": f"{path}/-", "value": value}
    else:
        yield {"op": "replace", "path": path, "value": after}


def _patch_member(before: Manifest, after: Manifest, name: str, path: str) -> Iterator[dict[str, Any]]:
    if name not in after:
        yield {"op": "remove", "path": path}
    elif name not in before:
        yield {"op": "add", "path": path, "value": after[name]}
    else:
        yield from build_patch(before[name], after[name], path)


def _escaped(name: str) -> str:
    return name.replace("~", "~0").replace("/", "~1")


def _cut(text: str) -> str:
    return text if len(text) <= _LONGEST_WARNING else f"{text[: _LONGEST_WARNING - 3]}..."
