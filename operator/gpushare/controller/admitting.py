"""The webhook that refuses broken sharing configurations when they are applied. Made by `running`, served over TLS.

Every replica answers, whoever leads: all of them see policies and nodes. What cannot be judged is let through, since the
controller refuses it again before any node gets it; the webhook is there to say so earlier.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any, Final

from gpushare import names
from gpushare.domain import manifests
from gpushare.domain.manifests import Manifest
from gpushare.plan import admission
from gpushare.plan.snapshot import Snapshot
from gpushare.serving.http import JSON, Request, Response
from gpushare.serving.tls import Place

PATH: Final = "/configs"
_VERSION: Final = "admission.k8s.io/v1"
_LONGEST_WARNING: Final = 250
"""What is longer is cut by the API server."""
_MOST_PROBLEMS: Final = 20


def place_of(namespace: str, secret: str) -> Place:
    """Whose certificate the webhook shows: its own, or one in a Secret that somebody else keeps."""
    return Place(
        namespace=namespace,
        secret=secret or names.CONFIG_WEBHOOK,
        owner=names.CONTROLLER,
        hosts=(f"{names.CONFIG_WEBHOOK}.{namespace}.svc",),
        webhooks=((manifests.VALIDATING_WEBHOOK_CONFIGURATION, names.CONFIG_WEBHOOK),),
    )


class Admitting:
    """A handler for `serving.http`."""

    def __init__(self, snapshot: Callable[[], Snapshot]) -> None:
        self._snapshot = snapshot

    async def answer(self, request: Request) -> Response:
        """The AdmissionReview of a ConfigMap, answered."""
        if request.path != PATH:
            return Response(status=404, body=f"there is {PATH}\n".encode())
        try:
            review = json.loads(request.body)
            uid, manifest = review["request"]["uid"], review["request"]["object"]
            known = review["apiVersion"] == _VERSION and manifest["kind"] == "ConfigMap"
        except (ValueError, KeyError, TypeError) as error:
            return Response(status=400, body=f"no AdmissionReview of a ConfigMap: {error!r}\n".encode())
        if not known:
            return Response(status=400, body=f"expected an AdmissionReview of {_VERSION} about a ConfigMap\n".encode())
        answer = {"uid": uid, **self._judge(manifest)}
        body = {"apiVersion": _VERSION, "kind": "AdmissionReview", "response": answer}
        return Response(body=json.dumps(body).encode(), content_type=JSON)

    def _judge(self, manifest: Manifest) -> dict[str, Any]:
        verdict = admission.judge(manifest, self._snapshot())
        answer: dict[str, Any] = {"allowed": not verdict.problems}
        if verdict.problems:
            message = _listed(verdict.problems)
            answer["status"] = {"status": "Failure", "code": 422, "reason": "Invalid", "message": message}
        if verdict.warnings:
            answer["warnings"] = [_cut(warning) for warning in verdict.warnings]
        return answer


def _listed(problems: Sequence[str]) -> str:
    """A problem a line, the first ones: kubectl prints the text as it is."""
    shown = problems[:_MOST_PROBLEMS]
    rest = [f"and {len(problems) - len(shown)} more"] if len(problems) > len(shown) else []
    return "\n".join([*shown, *rest])


def _cut(text: str) -> str:
    return text if len(text) <= _LONGEST_WARNING else f"{text[: _LONGEST_WARNING - 3]}..."
