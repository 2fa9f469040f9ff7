"""The admission webhook: reads a review, has `mutating` judge it, answers. Every replica serves it. Used by `answering`."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable

from gpushare.placement.quotas import Quota
from gpushare.scheduler import mutating, reviews
from gpushare.scheduler.mutating import AdmissionSettings
from gpushare.serving.http import JSON, Request, Response


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
        """Answers an AdmissionReview; 400 for what is none, which the API server takes for a failure of ours."""
        try:
            review = reviews.read_review(request.body)
        except reviews.BadReview as error:
            return Response(status=400, body=f"{error}\n".encode())
        verdict = mutating.judge(review, self._settings, self._room(review.namespace))
        if verdict.refusal is not None:
            self.verdicts["refused"] += 1
            metadata = review.pod.get("metadata") or {}
            name = metadata.get("name") or metadata.get("generateName", "")
            self._log.info(
                "not admitted", extra={"pod": f"{review.namespace}/{name}", "reason": verdict.refusal.message}
            )
        else:
            self.verdicts["changed" if verdict.pod is not review.pod else "unchanged"] += 1
        return Response(body=reviews.write_review(review, verdict), content_type=JSON)
