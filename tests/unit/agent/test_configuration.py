"""Configurations in files."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from gpushare.agent import configuration
from gpushare.agent.configuration import follow_file, read_file
from gpushare.agent.deciding import Assignment


@pytest.fixture(autouse=True)
def _impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(configuration, "FILE_POLL_SECONDS", 0.01)
    monkeypatch.setattr(configuration, "SETTLE_SECONDS", 0.05)


class Told:
    """Follows a file, and keeps what it was told."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.queue: asyncio.Queue[Assignment] = asyncio.Queue()
        self.task = asyncio.create_task(follow_file(path, self.queue.put_nowait))

    async def next(self) -> str:
        async with asyncio.timeout(5):
            return (await self.queue.get()).content

    async def end(self) -> None:
        self.task.cancel()
        await asyncio.wait([self.task])


@pytest.mark.usefixtures("skipped_time")
async def test_changes_are_told_once(tmp_path: Path) -> None:
    """The first text at once, another one when it is there, the same one never again."""
    path = tmp_path / "config.yaml"
    path.write_text("a")
    told = Told(path)
    assert await told.next() == "a"
    path.write_text("b")
    assert await told.next() == "b"
    path.write_text("b")
    await asyncio.sleep(0.1)
    assert told.queue.empty()
    await told.end()


@pytest.mark.usefixtures("skipped_time")
async def test_half_a_text_is_none(tmp_path: Path) -> None:
    """A file that somebody is writing in place is empty for a moment, which would mean that nothing is shared."""
    path = tmp_path / "config.yaml"
    path.write_text("a")
    told = Told(path)
    await told.next()
    for part in ("", "b", "bc"):
        path.write_text(part)
        await asyncio.sleep(0.02)

    assert await told.next() == "bc"
    await told.end()


def test_what_cannot_be_read(tmp_path: Path) -> None:
    """A problem of the assignment, with the place."""
    (tmp_path / "binary").write_bytes(b"\xff")

    assert [str(read_file(tmp_path / name, name).problem) for name in ("none", "binary")] == [
        "none: cannot be read: No such file or directory",
        "binary: cannot be read: it is no UTF-8 text",
    ]
