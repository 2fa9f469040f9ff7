"""HAMi's library on the machine: supplied by an administrator, kept by us in versions that are never written again.

A program that has loaded a library crashes when the file under it is replaced in place; so what containers mount is a copy,
named after its content. Used by the agent where a configuration says that this library isolates.
"""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import Sequence
from typing import Final

from gpushare.host.driver_roots import HOST_ROOT
from gpushare.host.files import HostFiles, write_atomically
from gpushare.sharing.limits import LIBRARY, LibraryPaths
from gpushare.sharing.responses import RequestRefused

ROOT: Final = "/var/lib/gpushare/hami-core"
"""On the host, and at the same place in the agent's container."""
_MAGIC: Final = b"\x7fELF"
_READABLE: Final = 0o755
_FOR_ALL: Final = 0o777
"""A container runs as whoever its image says."""


class HamiCore:
    """The library of one machine. Its methods block for a moment, so call them in threads."""

    def __init__(self, files: HostFiles, source: str) -> None:
        """`source`: path on the host where the administrator puts the library."""
        self._files = files
        self._source = source
        self.version = ""
        """Of the library that new containers get: digits of the sha256 of its content; empty: there is none."""

    def look(self) -> str:
        """Takes over what the administrator has put there. Returns why containers cannot have it; empty when they can."""
        content = self._files.read_bytes(HOST_ROOT + self._source) or self._files.read_bytes(self._source)
        if content is None:
            self.version = ""
            return f"HAMi's library is not at {self._source} of this node; put it there (libvgpu.so of HAMi-core)"
        if not content.startswith(_MAGIC):
            self.version = ""
            return f"{self._source} of this node is no shared library; put libvgpu.so of HAMi-core there"
        version = hashlib.sha256(content).hexdigest()[:12]
        try:
            self._keep(version, content)
        except OSError as error:
            self.version = ""
            return f"HAMi's library cannot be kept in {ROOT}: {error.strerror or error}"
        self.version = version
        return ""

    def prepare(self, ids: Sequence[str]) -> LibraryPaths:
        """Makes an empty directory for the container that has these ids, which nobody else has at the same time.

        Raises:
            RequestRefused: the library is missing, or the disk cannot be written.
        """
        version = self.version
        if not version or not self._files.exists(f"{ROOT}/{version}/libvgpu.so"):
            raise RequestRefused(
                f"HAMi's library is not at {self._source} of this node, and nothing else isolates its GPUs",
                reason="NoLibrary",
            )
        name = hashlib.sha256("\n".join(sorted(ids)).encode()).hexdigest()[:32]
        scratch, locks = f"{ROOT}/containers/{name}", f"{ROOT}/locks"
        try:
            shutil.rmtree(self._files.path(scratch), ignore_errors=True)
            for folder in (scratch, locks):
                self._files.path(folder).mkdir(parents=True, exist_ok=True)
                self._files.path(folder).chmod(_FOR_ALL)
        except OSError as error:
            raise RequestRefused(f"{scratch} of this node cannot be made: {error.strerror or error}") from error
        return LibraryPaths(
            library=f"{ROOT}/{version}/libvgpu.so",
            preload=f"{ROOT}/{version}/ld.so.preload",
            scratch=scratch,
            locks=locks,
        )

    def _keep(self, version: str, content: bytes) -> None:
        folder = self._files.path(f"{ROOT}/{version}")
        library, preload = folder / "libvgpu.so", folder / "ld.so.preload"
        if not library.exists():
            write_atomically(library, content, mode=_READABLE)
        if not preload.exists():
            write_atomically(preload, LIBRARY + "\n", mode=0o644)
