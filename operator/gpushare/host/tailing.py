"""New lines of a log file that somebody else writes. Used by `gpushare mps`, whose daemons write files that nobody reads."""

from __future__ import annotations

from pathlib import Path
from typing import Final

_MOST_BYTES: Final = 1 << 16
"""At one reading; of a log that grows faster, the rest comes with the next ones."""


class FileTail:
    """Remembers how far it has read. A file that is not there has no lines; one that is shorter than before is a new one."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._offset = 0

    def read(self) -> tuple[str, ...]:
        """Whole lines since the last reading; a line that is still being written comes later."""
        try:
            with self._path.open("rb") as file:
                if file.seek(0, 2) < self._offset:
                    self._offset = 0
                file.seek(self._offset)
                found = file.read(_MOST_BYTES)
        except OSError:
            self._offset = 0
            return ()
        # A line that is longer than what is read at once is cut, or it would never end.
        end = len(found) if len(found) == _MOST_BYTES and b"\n" not in found else found.rfind(b"\n") + 1
        self._offset += end
        return tuple(line for line in found[:end].decode(errors="replace").splitlines() if line.strip())
