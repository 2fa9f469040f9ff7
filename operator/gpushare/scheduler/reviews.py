"""Admission reviews (`admission.k8s.io/v1`) and JSON patches, as the API server has them with webhooks. Used by `admission`."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from gpushare.domain.manifests import Manifest


class BadReview(ValueError):  # noqa: N818 - the state is the name, as in `errors`
    """The body is no AdmissionReview; says why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Review:
    """What the API server asks about one pod."""

    uid: str
    operation: str
    """`CREATE` or `UPDATE`; others are not registered for."""
    namespace: str
    pod: Manifest
    before: Manifest | None = None
    """The stored pod, where it is updated."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Refusal:
    """Why a pod is not admitted, in words for whoever wrote it."""

    message: str
    code: int = 403
    reason: str = "Forbidden"


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """What is answered."""

    pod: Manifest
    """As it should be; the reviewed one where nothing is to be changed."""
    refusal: Refusal | None = None
    warnings: Sequence[str] = ()
    """kubectl prints each; the API server cuts them at 256 characters."""


def read_review(body: bytes) -> Review:
    """Reads an AdmissionReview. Raises BadReview."""
    try:
        review = json.loads(body)
        request = review["request"]
        found = Review(
            uid=str(request["uid"]),
            operation=str(request["operation"]),
            namespace=str(request.get("namespace", "")),
            pod=request["object"],
            before=request.get("oldObject") or None,
        )
        version = review["apiVersion"]
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        raise BadReview(f"no AdmissionReview: {error}") from error
    if version != "admission.k8s.io/v1" or not isinstance(found.pod, dict) or found.pod.get("kind") != "Pod":
        raise BadReview("expected an AdmissionReview of admission.k8s.io/v1 about a Pod")
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
    elif patch := list(build_patch(review.pod, verdict.pod)):
        response["patchType"] = "JSONPatch"
        response["patch"] = base64.b64encode(json.dumps(patch).encode()).decode()
    if verdict.warnings:
        response["warnings"] = list(verdict.warnings)
    return json.dumps({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": response}).encode()


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
