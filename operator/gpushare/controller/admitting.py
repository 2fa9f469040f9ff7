"""The webhook that refuses broken sharing configurations when they are applied. Made by `running`, served over TLS.

Every replica answers, whoever leads: all of them see policies and nodes. What cannot be judged is let through, since the
controller refuses it again before any node gets it; the webhook is there to say so earlier.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from gpushare import names
from gpushare.domain import manifests
from gpushare.plan import admission
from gpushare.plan.snapshot import Snapshot
from gpushare.serving import reviews
from gpushare.serving.http import Request, Response
from gpushare.serving.reviews import Refusal, Review, Verdict
from gpushare.serving.tls import Place

PATH: Final = "/configs"
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
        return reviews.answer(request, manifests.CONFIG_MAP.kind, self._judge)

    def _judge(self, review: Review) -> Verdict:
        found = admission.judge(review.manifest, self._snapshot())
        refusal = Refusal(message=_listed(found.problems), code=422, reason="Invalid") if found.problems else None
        return Verdict(manifest=review.manifest, refusal=refusal, warnings=found.warnings)


def _listed(problems: Sequence[str]) -> str:
    """A problem a line, the first ones: kubectl prints the text as it is."""
    shown = problems[:_MOST_PROBLEMS]
    rest = [f"and {len(problems) - len(shown)} more"] if len(problems) > len(shown) else []
    return "\n".join([*shown, *rest])
