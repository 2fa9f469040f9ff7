"""One value in one file on the host, over restarts of the process. Used by `gpushare mps` for what it has started."""

from __future__ import annotations

import json
import logging
from pathlib import Path
from typing import Generic, TypeVar

from gpushare.host import values
from gpushare.host.files import write_atomically

T = TypeVar("T")


class ValueFile(Generic[T]):
    """The file; damage and a full disk are warnings, never failures."""

    def __init__(self, path: Path, kind: type[T], log: logging.Logger) -> None:
        self._path = path
        self._kind = kind
        self._log = log

    def read(self) -> T | None:
        """What was remembered; None where there is no such file, or it makes no sense."""
        try:
            return values.decode(self._kind, json.loads(self._path.read_text(encoding="utf-8")))
        except FileNotFoundError:
            return None
        except (OSError, ValueError, AttributeError) as error:
            self._log.warning("file unusable: starting afresh", extra={"path": str(self._path), "reason": str(error)})
            return None

    def write(self, value: T) -> None:
        """Remembers."""
        try:
            write_atomically(self._path, json.dumps(values.encode(value), indent=1) + "\n")
        except OSError as error:
            self._log.warning("file cannot be written", extra={"path": str(self._path), "reason": str(error)})
