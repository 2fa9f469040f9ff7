"""Files of the machine, below a root that is `/` in production and a directory in the sandbox and in tests."""

from __future__ import annotations

import contextlib
import os
import tempfile
from pathlib import Path


class HostFiles:
    """Reads and writes below one root. Paths are as the host has them: `/proc/driver/nvidia/version`."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def path(self, path: str) -> Path:
        """Where a path of the host really is; a relative one is the working directory's, as on any command line."""
        return self.root / path.lstrip("/") if path.startswith("/") else Path(path)

    def read_text(self, path: str) -> str | None:
        """The content of a file; None where it is not there or cannot be read."""
        data = self.read_bytes(path)
        return None if data is None else data.decode(errors="replace")

    def read_bytes(self, path: str) -> bytes | None:
        """The same, undecoded."""
        try:
            return self.path(path).read_bytes()
        except OSError:
            return None

    def exists(self, path: str) -> bool:
        """Whether anything is there, a device node as much as a file."""
        return self.path(path).exists()

    def names(self, path: str) -> tuple[str, ...]:
        """Names in a directory, sorted; none where there is no such directory."""
        try:
            return tuple(sorted(entry.name for entry in self.path(path).iterdir()))
        except OSError:
            return ()


def write_atomically(path: Path, content: str | bytes, *, mode: int = 0o600) -> None:
    """Writes a file so that a reader, or a machine that loses its power, finds the old content or the new one.

    `mode`: who may read it, as for `chmod`.

    Raises:
        OSError: it cannot be written; what was there stays.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    descriptor, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(content.encode() if isinstance(content, str) else content)
            os.fchmod(file.fileno(), mode)
            file.flush()
            os.fsync(file.fileno())
        Path(temporary).replace(path)
    except OSError:
        with contextlib.suppress(OSError):
            Path(temporary).unlink()
        raise
