"""Admission webhooks: who is asked about what, in which order, and what comes of their answers.

Called by `reviewing` between the steps of a write, and before a delete. How a webhook is reached is in `calling`.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Final, TypeAlias

from gpushare.domain.manifests import Manifest
from gpushare.sandbox.apiserver import statuses
from gpushare.sandbox.apiserver.handling.attempts import Attempt
from gpushare.sandbox.apiserver.handling.calling import CallFailed
from gpushare.sandbox.apiserver.handling.policies import GROUP
from gpushare.sandbox.apiserver.objects.jsonvalues import quoted
from gpushare.sandbox.apiserver.patching import json_patches
from gpushare.sandbox.apiserver.protocol import admission_reviews
from gpushare.sandbox.apiserver.protocol.admission_reviews import Answer, BadAnswer
from gpushare.sandbox.apiserver.resources import NAMESPACES, Key
from gpushare.sandbox.apiserver.storage import Store
from gpushare.sandbox.apiserver.validation import expressions
from gpushare.sandbox.apiserver.validation.expressions import ExpressionError

MUTATING: Final[Key] = (GROUP, "mutatingwebhookconfigurations")
VALIDATING: Final[Key] = (GROUP, "validatingwebhookconfigurations")

Call: TypeAlias = Callable[[Manifest, Manifest], Awaitable[bytes]]
"""Posts a review to a webhook, as its configuration says; returns the body of the answer. Raises `CallFailed`."""


@dataclass(slots=True)
class _Round:
    """What the mutating webhooks make of one object."""

    attempt: Attempt
    seen: dict[str, Manifest | None] = field(default_factory=dict)
    """The object after each webhook had its say, by the webhook's name."""


@dataclass(frozen=True, slots=True)
class Webhooks:
    """Asks every webhook that is concerned."""

    store: Store
    call: Call
    log: logging.Logger

    async def mutate(self, attempt: Attempt, warnings: list[str]) -> Manifest | None:
        """The object as the webhooks have made it, the same one where they changed nothing. Raises `ApiError`."""
        current = _Round(attempt)
        webhooks = list(self._webhooks(MUTATING, attempt))
        for webhook in webhooks:
            await self._mutate_by(webhook, current, warnings)
        for webhook in webhooks:
            # Once more, where somebody after it has changed the object.
            name = webhook["name"]
            if webhook["reinvocationPolicy"] == "IfNeeded" and current.seen.get(name, current.attempt.new) != (
                current.attempt.new
            ):
                await self._mutate_by(webhook, current, warnings)
        return current.attempt.new

    async def validate(self, attempt: Attempt, warnings: list[str]) -> None:
        """Asks all at once; the first that refuses counts. Raises `ApiError`."""
        webhooks = [each for each in self._webhooks(VALIDATING, attempt) if self._is_concerned(each, attempt)]
        if not webhooks:
            return
        asked = (self._ask(webhook, attempt, warnings, may_patch=False) for webhook in webhooks)
        results = await asyncio.gather(*asked, return_exceptions=True)
        for result in results:
            if isinstance(result, BaseException):
                raise result

    async def _mutate_by(self, webhook: Manifest, current: _Round, warnings: list[str]) -> None:
        if not self._is_concerned(webhook, current.attempt):
            return
        answer = await self._ask(webhook, current.attempt, warnings, may_patch=current.attempt.new is not None)
        if answer is not None and answer.patch is not None:
            try:
                new = json_patches.apply(current.attempt.new, answer.patch)
            except statuses.ApiError as error:
                raise statuses.internal(f"jsonpatch of webhook {quoted(webhook['name'])}: {error}") from error
            current.attempt = replace(current.attempt, new=new)
        current.seen[webhook["name"]] = current.attempt.new

    def _webhooks(self, key: Key, attempt: Attempt) -> Iterator[Manifest]:
        """Those whose rules and selectors mean it, in the order in which they are asked."""
        if attempt.resource.group == GROUP:
            return  # or a webhook could keep itself from being taken away
        for record in self.store.objects(key):
            for webhook in record.object.get("webhooks") or ():
                if attempt.is_meant_by(webhook.get("rules") or ()) and attempt.is_selected_by(webhook, self.store):
                    yield webhook

    def _is_concerned(self, webhook: Manifest, attempt: Attempt) -> bool:
        namespace = self.store.get(NAMESPACES, "", attempt.namespace) if attempt.namespace else None
        variables = {
            "object": attempt.new,
            "oldObject": attempt.old,
            "request": attempt.request,
            "namespaceObject": namespace.object if namespace else None,
        }
        failed = None
        for condition in webhook.get("matchConditions") or ():
            try:
                if not expressions.evaluate(condition["expression"], variables):
                    return False
            except ExpressionError as error:
                failed = failed or error
        if failed is None:
            return True
        if webhook["failurePolicy"] == "Fail":
            raise statuses.forbidden(attempt.resource, attempt.name, str(failed))
        return False

    async def _ask(self, webhook: Manifest, attempt: Attempt, warnings: list[str], *, may_patch: bool) -> Answer | None:
        """The answer of one webhook; None where it failed and may. Raises `ApiError` where it refuses."""
        name = webhook["name"]
        if attempt.dry_run and webhook["sideEffects"] not in ("None", "NoneOnDryRun"):
            raise statuses.bad_request(f"admission webhook {quoted(name)} does not support dry run")
        review = admission_reviews.build_review(attempt.request, attempt.new, attempt.old)
        try:
            body = await self.call(webhook, review)
            answer = admission_reviews.read_answer(body, review["request"]["uid"], may_patch=may_patch)
        except (CallFailed, BadAnswer) as error:
            why = f"received invalid webhook response: {error}" if isinstance(error, BadAnswer) else str(error)
            text = f"failed calling webhook {quoted(name)}: {why}"
            if webhook["failurePolicy"] == "Fail":
                raise statuses.internal(text) from error
            self.log.warning("failing open", extra={"reason": text})
            return None
        warnings.extend(answer.warnings)
        if not answer.allowed:
            raise admission_reviews.refusal(name, answer.status)
        return answer
