"""What containers print."""

from __future__ import annotations

import asyncio
import logging

from gpushare.sandbox.node import logs
from gpushare.sandbox.node.logs import Output


def texts(lines: list[logs.Line]) -> list[str]:
    return [line.text for line in lines]


async def test_tail_and_since() -> None:
    """The last lines, and the lines from a moment on."""
    output = Output()
    output.write("one\ntwo\nthree")

    assert texts(output.lines()) == ["one", "two", "three"]
    assert texts(output.lines(tail=2)) == ["two", "three"]
    assert texts(output.lines(tail=0)) == []
    assert texts(output.lines(tail=99)) == ["one", "two", "three"]
    last = output.lines()[-1]
    assert texts(output.lines(since=last.time + 1)) == []
    assert last.stamped().endswith("Z three")


async def test_only_so_many_lines_are_kept() -> None:
    """A program that never stops printing does not fill the memory."""
    output = Output()
    output.write("\n".join(map(str, range(logs.LINES_MOST + 10))))
    assert (len(output.lines()), output.lines()[0].text) == (logs.LINES_MOST, "10")


async def test_following() -> None:
    """A follower sees what was there, then each line as it comes, also from threads, and the end."""
    output, seen = Output(), []
    output.write("before")
    followed = output.follow()
    seen += texts(await anext(followed))
    for number in range(3):
        coming = asyncio.ensure_future(anext(followed))
        await asyncio.to_thread(output.write, f"line {number}")
        seen += texts(await coming)
    output.write("last words")
    output.end()
    async for lines in followed:
        seen += texts(lines)
    assert seen == ["before", "line 0", "line 1", "line 2", "last words"]


async def test_loggers_write_into_their_own_output() -> None:
    """Children write along, other containers and the process's own loggers are not concerned, nothing stays behind."""
    before = set(logging.root.manager.loggerDict)
    one, two = Output(), Output()
    logger = logs.build_logger("pod.agent", one)
    logs.build_logger("pod.agent", two).info("other")
    logger.info("pool offered", extra={"resource": "nvidia.com/gpu", "shares": 16})
    logger.getChild("health").warning("gpu lost")

    assert texts(one.lines()) == ["I pool offered resource='nvidia.com/gpu' shares=16", "W gpu lost"]
    assert texts(two.lines()) == ["I other"]
    assert set(logging.root.manager.loggerDict) == before
