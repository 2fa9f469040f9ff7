"""AdmissionReviews: what a webhook is asked, and what its answer says. Pure; called by `handling.webhooks`."""

from __future__ import annotations

import base64
import binascii
import json
import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from gpushare.domain.manifests import Manifest
from gpushare.sandbox.apiserver.objects.jsonvalues import quoted
from gpushare.sandbox.apiserver.statuses import ApiError

_VERSION: Final = "admission.k8s.io/v1"
_KIND: Final = "AdmissionReview"
_LEAST_CODE: Final = 400


class BadAnswer(ValueError):  # noqa: N818 - the state is the name
    """An answer that is none, in the words of a real server."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What a webhook says."""

    allowed: bool
    status: Mapping[str, Any]
    """Why not; may be empty."""
    patch: Any = None
    """Operations of a JSON patch; None for none."""
    warnings: tuple[str, ...] = ()


def build_review(request: Manifest, new: Manifest | None, old: Manifest | None) -> Manifest:
    """The question: an AdmissionRequest with a uid of its own, and the objects."""
    asked = {**request, "uid": str(uuid.uuid4()), "object": new, "oldObject": old, "options": _options_of(request)}
    return {"kind": _KIND, "apiVersion": _VERSION, "request": asked}


def read_answer(body: bytes, uid: str, *, may_patch: bool) -> Answer:
    """Reads the answer to the question with that uid. Raises `BadAnswer`."""
    try:
        review = json.loads(body)
    except ValueError as error:
        raise BadAnswer(f"couldn't get version/kind; json parse error: {error}") from error
    if not isinstance(review, dict) or (review.get("apiVersion"), review.get("kind")) != (_VERSION, _KIND):
        found = review if isinstance(review, dict) else {}
        raise BadAnswer(
            f"expected webhook response of {_VERSION}, Kind={_KIND}, got {found.get('apiVersion', '')}, "
            f"Kind={found.get('kind', '')}"
        )
    response = review.get("response")
    if not isinstance(response, dict):
        raise BadAnswer("webhook response was absent")
    if response.get("uid") != uid:
        raise BadAnswer(f"expected response.uid={quoted(uid)}, got {quoted(response.get('uid', ''))}")
    return Answer(
        allowed=bool(response.get("allowed")),
        status=response.get("status") or {},
        patch=_read_patch(response) if may_patch else None,
        warnings=tuple(map(str, response.get("warnings") or ())),
    )


def refusal(webhook: str, status: Mapping[str, Any]) -> ApiError:
    """The error that the client gets. The code is at least 400, as on a real server, whatever the webhook says."""
    denied = f"admission webhook {quoted(webhook)} denied the request"
    why = status.get("message") or status.get("reason")
    code = max(int(status.get("code") or 0), _LEAST_CODE)
    message = f"{denied}: {why}" if why else f"{denied} without explanation"
    return ApiError(code, str(status.get("reason") or ""), message, details=status.get("details"))


def _options_of(request: Manifest) -> Manifest:
    kinds = {"CREATE": "CreateOptions", "UPDATE": "UpdateOptions", "DELETE": "DeleteOptions"}
    dry = {"dryRun": ["All"]} if request["dryRun"] else {}
    return {"kind": kinds[request["operation"]], "apiVersion": "meta.k8s.io/v1", **dry}


def _read_patch(response: Mapping[str, Any]) -> Any:
    patch, kind = response.get("patch"), response.get("patchType")
    if not patch:
        if kind:
            raise BadAnswer("webhook returned response.patchType but not response.patch")
        return None
    if kind != "JSONPatch":
        said = "webhook returned response.patch but not response.patchType"
        raise BadAnswer(f"webhook returned invalid response.patchType of {quoted(kind)}" if kind else said)
    try:
        return json.loads(base64.b64decode(patch, validate=True))
    except (binascii.Error, TypeError, ValueError) as error:
        raise BadAnswer(f"invalid JSON patch: {error}") from error
