"""The directory from which container runtimes read CDI specifications. Written by the agent, its own files only."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Mapping
from typing import Any, Final

from gpushare.errors import Problem
from gpushare.host.files import HostFiles, write_atomically
from gpushare.sharing.cdi import CLASSES, Document
from gpushare.sharing.responses import CDI_VENDOR

FOLDER: Final = "/var/run/cdi"
_MODE: Final = 0o644
"""For everybody: runtimes without root, and people who look."""


class CdiFolder:
    """Our files in it, one a class: `k8s.device-plugin.nvidia.com-gpu.json`."""

    def __init__(self, files: HostFiles) -> None:
        self._files = files

    def apply(self, documents: Mapping[str, Document]) -> tuple[Problem, ...]:
        """Writes what differs, each file in one step, and removes those of other classes. Returns what could not be done."""
        problems = []
        for kind in CLASSES:
            try:
                self._apply(kind, documents.get(kind))
            except OSError as error:
                verb = "written" if kind in documents else "removed"
                problems.append(Problem(path=path_of(kind), message=f"cannot be {verb}: {error.strerror}"))
        return tuple(problems)

    def holds(self, documents: Mapping[str, Document]) -> bool:
        """Whether these documents are there and no other of ours."""
        return all(self._text(kind) == _text_of(documents.get(kind)) for kind in CLASSES)

    def described(self, kind: str, document: Document) -> frozenset[str]:
        """Names of the devices of a document that a runtime finds described there, as the document describes them."""
        on_disk = self._read(kind)
        if on_disk.get("containerEdits") != document["containerEdits"]:
            return frozenset()
        found = on_disk.get("devices") or ()
        return frozenset(device["name"] for device in document["devices"] if device in found)

    def _apply(self, kind: str, document: Document | None) -> None:
        path, text = self._files.path(path_of(kind)), _text_of(document)
        if text is None:
            path.unlink(missing_ok=True)
        elif text != self._text(kind):
            write_atomically(path, text, mode=_MODE)

    def _text(self, kind: str) -> str | None:
        return self._files.read_text(path_of(kind))

    def _read(self, kind: str) -> Mapping[str, Any]:
        with contextlib.suppress(ValueError):
            document = json.loads(self._text(kind) or "{}")
            if isinstance(document, dict):
                return document
        return {}


def path_of(kind: str) -> str:
    """Where the specification of a class is, on the host."""
    return f"{FOLDER}/{CDI_VENDOR}-{kind}.json"


def _text_of(document: Document | None) -> str | None:
    return None if document is None else json.dumps(document, indent=1) + "\n"
