"""Writes and deletes of clients: between their steps, admission webhooks are asked. Called by `dispatching`.

What the server does by itself goes past them, straight to `writing` and `deleting`.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from gpushare.domain.manifests import Manifest
from gpushare.sandbox.apiserver.handling import attempts
from gpushare.sandbox.apiserver.handling.attempts import Attempt
from gpushare.sandbox.apiserver.handling.webhooks import Webhooks
from gpushare.sandbox.apiserver.handling.writing import Draft, Write, Writer
from gpushare.sandbox.apiserver.resources import Resource
from gpushare.sandbox.apiserver.statuses import ApiError
from gpushare.sandbox.apiserver.storage import Record


@dataclass(frozen=True, slots=True)
class Reviewed:
    """Writes what the webhooks let through, as they have made it."""

    writer: Writer
    webhooks: Webhooks

    async def create(self, resource: Resource, namespace: str, obj: Manifest, write: Write) -> Record:
        """See `Writer.create`."""
        return await self._write(self.writer.draft_create(resource, namespace, obj, write))

    async def update(self, resource: Resource, old: Record, new: Manifest, write: Write) -> Record:
        """See `Writer.update`. Raises `Outdated` besides, where somebody wrote while a webhook was asked."""
        return await self._write(self.writer.draft_update(resource, old, new, write))

    async def apply(
        self, resource: Resource, place: tuple[str, str], config: Manifest, write: Write, *, force: bool
    ) -> tuple[Record, bool]:
        """Server-side apply; whether the object was created. Raises as `update`."""
        draft = self.writer.draft_apply(resource, place, config, write, force=force)
        return await self._write(draft), draft.old is None

    async def check_delete(self, resource: Resource, record: Record, write: Write) -> None:
        """Whether an object may be deleted. Raises `ApiError`."""
        attempt = Attempt(
            operation=attempts.DELETE,
            resource=resource.stored,
            user=write.user,
            new=None,
            old=record.object,
            dry_run=write.dry_run,
        )
        with _warned(write.warnings):
            await self.webhooks.mutate(attempt, write.warnings)
            self.writer.policies.check(attempt, write.warnings)
            await self.webhooks.validate(attempt, write.warnings)

    async def _write(self, draft: Draft) -> Record:
        warnings = draft.write.warnings
        with _warned(warnings):
            new = await self.webhooks.mutate(draft.attempt, warnings)
            if new is not None and new is not draft.new:
                self.writer.amend(draft, new)
            self.writer.check(draft)
            await self.webhooks.validate(draft.attempt, warnings)
            return self.writer.commit(draft)


@contextlib.contextmanager
def _warned(warnings: Sequence[str]) -> Iterator[None]:
    """Whoever is refused is told what was warned of before."""
    try:
        yield
    except ApiError as error:
        error.warnings = tuple(warnings)
        raise
