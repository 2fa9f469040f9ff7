"""Shared libraries of the machine: under which name programs load them. Used by `driver_files`; nothing is loaded."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Final

_MAGIC: Final = b"\x7fELF\x02\x01"
"""64 bits, little-endian: every machine for which there is a driver with CUDA."""
_PROGRAM_HEADERS_AT: Final = 32
_PROGRAM_HEADER: Final = struct.Struct("<IIQQQQQQ")
_DYNAMIC_ENTRY: Final = struct.Struct("<QQ")
_PT_LOAD: Final = 1
_PT_DYNAMIC: Final = 2
_DT_NULL: Final = 0
_DT_STRTAB: Final = 5
_DT_SONAME: Final = 14
_LONGEST: Final = 256
_MOST_ENTRIES: Final = 4096


def read_soname(path: Path) -> str:
    """The library's SONAME; empty where it has none, cannot be read or is no such library."""
    try:
        with path.open("rb") as file:
            return _soname_in(file)
    except (OSError, struct.error, ValueError, OverflowError):
        return ""


def _soname_in(file: IO[bytes]) -> str:
    # Piece by piece: some of these libraries have a hundred megabytes.
    if _read(file, 0, len(_MAGIC)) != _MAGIC:
        return ""
    segments = list(_segments_of(file))
    entries = dict(_dynamic_entries(file, segments))
    if _DT_SONAME not in entries or _DT_STRTAB not in entries:
        return ""
    address = entries[_DT_STRTAB] + entries[_DT_SONAME]
    for kind, offset, start, size in segments:
        if kind == _PT_LOAD and start <= address < start + size:
            name, end, _ = _read(file, offset + address - start, _LONGEST).partition(b"\0")
            return name.decode() if end else ""
    return ""


def _segments_of(file: IO[bytes]) -> Iterator[tuple[int, int, int, int]]:
    """Type, place in the file, address and size in the file of each."""
    (headers_at,) = struct.unpack("<Q", _read(file, _PROGRAM_HEADERS_AT, 8))
    size, count = struct.unpack("<HH", _read(file, 54, 4))
    for number in range(count):
        header = _read(file, headers_at + number * size, _PROGRAM_HEADER.size)
        kind, _, offset, address, _, in_file, _, _ = _PROGRAM_HEADER.unpack(header)
        yield kind, offset, address, in_file


def _dynamic_entries(file: IO[bytes], segments: list[tuple[int, int, int, int]]) -> Iterator[tuple[int, int]]:
    for kind, offset, _, size in segments:
        if kind == _PT_DYNAMIC:
            length = min(size // _DYNAMIC_ENTRY.size, _MOST_ENTRIES) * _DYNAMIC_ENTRY.size
            for tag, value in _DYNAMIC_ENTRY.iter_unpack(_read(file, offset, length)):
                if tag == _DT_NULL:
                    return
                yield tag, value


def _read(file: IO[bytes], offset: int, length: int) -> bytes:
    file.seek(offset)
    return file.read(length)
