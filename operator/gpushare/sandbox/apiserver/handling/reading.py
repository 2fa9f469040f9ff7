"""Get and list: selectors, pages, and the versions at which a client wants to see things."""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

from gpushare.sandbox.apiserver import statuses
from gpushare.sandbox.apiserver.objects import selectors
from gpushare.sandbox.apiserver.protocol import presenting
from gpushare.sandbox.apiserver.requests import Request, Response
from gpushare.sandbox.apiserver.resources import Resource
from gpushare.sandbox.apiserver.storage import Record, Store

_TOKEN_VERSION = "meta.k8s.io/v1"  # noqa: S105 - the format of continue tokens, no secret


@dataclass(frozen=True, slots=True)
class Reader:
    """Answers what changes nothing."""

    store: Store

    def get(self, resource: Resource, namespace: str, name: str) -> Record:
        """One object. Raises `ApiError` 404."""
        record = self.store.get(resource.key, namespace, name)
        if record is None:
            raise statuses.not_found(resource, name)
        return record

    def list(self, resource: Resource, namespace: str | None, request: Request) -> Response:
        """A list, as the query wants it."""
        selector = selectors.parse(resource, request.query)
        page = _Page.of(request)
        version = page.version if page else _version(self.store, request)
        records = self._at(resource, namespace, version, page)
        shown = version or self.store.version
        limit = max(request.number("limit") or 0, 0)
        after = page.after if page else ("", "")
        matching = (r for r in records if (r.namespace, r.name) > after and selector.matches(r.object))
        # How many remain is told only where every object counts; else no more are looked at than are shown.
        chosen = [*(islice(matching, limit + 1) if limit and not selector.is_empty else matching)]
        metadata: dict[str, Any] = {"resourceVersion": str(shown)}
        if limit and len(chosen) > limit:
            metadata["continue"] = _Page(shown, (chosen[limit - 1].namespace, chosen[limit - 1].name)).token
            if selector.is_empty:
                metadata["remainingItemCount"] = len(chosen) - limit
            chosen = chosen[:limit]
        return presenting.many(resource, chosen, request, metadata)

    def select(self, resource: Resource, namespace: str | None, request: Request) -> Sequence[Record]:
        """What a list with this query would hold now: the objects of a DELETE of a collection."""
        selector = selectors.parse(resource, request.query)
        return [record for record in self.store.objects(resource.key, namespace) if selector.matches(record.object)]

    def _at(self, resource: Resource, namespace: str | None, version: int, page: _Page | None) -> Sequence[Record]:
        if version in (0, self.store.version):
            return self.store.objects(resource.key, namespace)
        try:
            return self.store.objects_at(resource.key, namespace, version)
        except statuses.ApiError:
            if page is None:
                raise statuses.expired(f"The resourceVersion for the provided list is too old: {version}") from None
            raise statuses.expired(
                "The provided continue parameter is too old to display a consistent list result. You must start a new list "
                "without the continue parameter."
            ) from None


@dataclass(frozen=True, slots=True)
class _Page:
    """Where the next page of a list begins."""

    version: int
    after: tuple[str, str]

    @classmethod
    def of(cls, request: Request) -> _Page | None:
        """The page that a request asks for. Raises `ApiError` 400 for a token that is none."""
        token = request.query.get("continue", "")
        if not token:
            return None
        try:
            content = json.loads(base64.urlsafe_b64decode(token + "=" * (-len(token) % 4)))
            return cls(int(content["rv"]), (content["start"][0], content["start"][1]))
        except (ValueError, KeyError, IndexError, TypeError, binascii.Error) as error:
            raise statuses.bad_request(f"invalid continue token: continue key is not valid: {error}") from None

    @property
    def token(self) -> str:
        """As the client gives it back."""
        content = {"v": _TOKEN_VERSION, "rv": self.version, "start": self.after}
        return base64.urlsafe_b64encode(json.dumps(content).encode()).rstrip(b"=").decode()


def parse_version(store: Store, text: str) -> int:
    """A resourceVersion of a request. Raises `ApiError` 400 for text, 504 for a version that is not there yet."""
    if not text.isdecimal():
        why = f'resourceVersion: Invalid value: "{text}": strconv.ParseUint: parsing "{text}": invalid syntax'
        raise statuses.bad_request(f"invalid resource version: {why}")
    version = int(text)
    if version > store.version:
        cause = {"reason": "ResourceVersionTooLarge", "message": "Too large resource version"}
        raise statuses.ApiError(
            504, "Timeout", f"Timeout: Too large resource version: {version}, current: {store.version}",
            details={"causes": [cause], "retryAfterSeconds": 1}, retry_after=1,
        )  # fmt: skip
    return version


def _version(store: Store, request: Request) -> int:
    """The version that a list must show exactly; 0 for the newest."""
    text = request.query.get("resourceVersion", "")
    version = parse_version(store, text) if text else 0
    return version if request.query.get("resourceVersionMatch") == "Exact" else 0
