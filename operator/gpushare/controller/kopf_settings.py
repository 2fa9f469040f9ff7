"""How kopf is set up: it watches, for ever, and writes nothing anywhere. Used by `operating`."""

from __future__ import annotations

import dataclasses
import ssl
from collections.abc import Iterator
from typing import Any

import kopf

from gpushare import names
from gpushare.controller.snapshotting import WATCHED

_PAGE = 500
_LONGEST_PAUSE = 5.0


def build_settings(*, streaming: bool) -> kopf.OperatorSettings:
    """Settings for one start of kopf. `streaming`: the first list comes as a watch, without a peak of memory."""
    settings = kopf.OperatorSettings()
    settings.posting.enabled = False
    settings.scanning.disabled = True  # it would want to list namespaces and CRDs
    settings.process.ultimate_exiting_timeout = None  # it would kill the thread's process
    settings.networking.error_backoffs = _Endless()
    settings.networking.request_timeout = 60.0
    settings.networking.connect_timeout = 10.0
    settings.watching.initial_streaming = streaming
    settings.watching.chunk_size = _PAGE
    settings.queueing.idle_timeout = 1.0  # seconds that a task a seen object stays; thousands come at the start
    for watched in WATCHED:
        if watched.labels:
            settings.watching.label_selectors[watched.kind.group, watched.kind.version, watched.kind.plural] = (
                watched.labels
            )
    # Never used, as there are event handlers only; own names all the same, and storages that cannot store.
    settings.persistence.finalizer = f"{names.KOPF_PREFIX}/finalizer"
    settings.persistence.progress_storage = _NoProgress()
    settings.persistence.diffbase_storage = _NoDiffBase()
    return settings


@dataclasses.dataclass(frozen=True)
class Connection(kopf.ConnectionInfo):
    """Credentials for kopf, with our own TLS context: it takes a client certificate from memory."""

    tls: ssl.SSLContext | None = None

    def as_ssl_context(self) -> ssl.SSLContext:
        """What kopf's connections verify and show."""
        return self.tls or super().as_ssl_context()


class _Endless:
    """Pauses without end: for a moment after its start, an API server forbids everything, and kopf would take it at its word.

    No list, since kopf gives up after the last of it.
    """

    def __iter__(self) -> Iterator[float]:
        pause = 0.1
        while True:
            yield pause
            pause = min(pause * 2, _LONGEST_PAUSE)


class _NoDiffBase(kopf.DiffBaseStorage):
    """Remembers nothing of an object, and spares the copy of each that the default makes to compare with."""

    def build(self, **_: Any) -> kopf.BodyEssence:
        return kopf.BodyEssence({})

    def fetch(self, **_: Any) -> kopf.BodyEssence | None:
        return None

    def store(self, **_: Any) -> None:
        pass


class _NoProgress(kopf.ProgressStorage):
    """Remembers nothing of a handler: event handlers are not tried again."""

    def fetch(self, **_: Any) -> None:
        return None

    def store(self, **_: Any) -> None:
        pass

    def purge(self, **_: Any) -> None:
        pass

    def touch(self, **_: Any) -> None:
        pass

    def clear(self, *, essence: kopf.BodyEssence) -> kopf.BodyEssence:
        return essence
