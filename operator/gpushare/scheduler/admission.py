"""The admission webhook: has `mutating` judge what the API server asks about. Every replica serves it. Used by `answering`."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable

from gpushare.domain import manifests
from gpushare.placement.quotas import Quota
from gpushare.scheduler import mutating
from gpushare.scheduler.mutating import AdmissionSettings
from gpushare.serving import reviews
from gpushare.serving.http import Request, Response
from gpushare.serving.reviews import Review, Verdict


class Admission:
    """Answers the API server."""

    def __init__(self, settings: AdmissionSettings, room: Callable[[str], Quota], log: logging.Logger) -> None:
        """`room`: what is left of the quota of a namespace."""
        self._settings = settings
        self._room = room
        self._log = log
        self.verdicts: Counter[str] = Counter()
        """How many pods were admitted as they were, changed, or refused."""

    async def answer(self, request: Request) -> Response:
        """The AdmissionReview of a pod, answered."""
        return reviews.answer(request, manifests.POD.kind, self._judge)

    def _judge(self, review: Review) -> Verdict:
        verdict = mutating.judge(review, self._settings, self._room(review.namespace))
        if verdict.refusal is not None:
            self.verdicts["refused"] += 1
            metadata = review.manifest.get("metadata") or {}
            name = metadata.get("name") or metadata.get("generateName", "")
            self._log.info(
                "not admitted", extra={"pod": f"{review.namespace}/{name}", "reason": verdict.refusal.message}
            )
        else:
            self.verdicts["changed" if verdict.manifest is not review.manifest else "unchanged"] += 1
        return verdict
