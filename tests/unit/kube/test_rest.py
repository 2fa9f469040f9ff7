"""What a client makes of answers, whatever carries them."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncGenerator, Sequence

import pytest

from gpushare.domain import manifests
from gpushare.errors import ClusterUnavailable, GpuShareError
from gpushare.kube.requests import Request
from gpushare.kube.rest import Answer, RestCluster

pytestmark = pytest.mark.usefixtures("skipped_time")

GOOD = Answer(200, b'{"kind": "Node", "metadata": {"name": "gpu01"}}')
BUSY = Answer(429, b'{"kind": "Status", "message": "too many requests"}')
BROKEN = Answer(500, b'{"kind": "Status", "message": "no leader"}')
GONE = Answer(404, b'{"kind": "Status", "message": "no such path"}')


class Scripted:
    """A transport that answers as scripted, the last answer for ever."""

    def __init__(self, answers: Sequence[Answer]) -> None:
        self.answers = list(answers)
        self.sent = 0

    async def send(self, _: Request) -> Answer:
        self.sent += 1
        return self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]

    def stream(self, request: Request, *, timeout_seconds: int) -> AsyncGenerator[Answer | bytes, None]:
        raise NotImplementedError

    async def close(self) -> None:
        pass


@pytest.mark.parametrize(
    ("answers", "reads", "writes"),
    [
        pytest.param([BUSY, BUSY, GOOD], 3, 3, id="busy for a moment"),
        pytest.param([BUSY], 5, 5, id="busy for long"),
        pytest.param([BROKEN, BROKEN, GOOD], 3, 1, id="broken for a moment"),
        pytest.param([GONE, GOOD], 1, 1, id="an answer"),
    ],
)
async def test_another_try(answers: Sequence[Answer], reads: int, writes: int) -> None:
    """Who is turned away asks again, and who only wanted to read also where something else went wrong; some times."""
    reading, writing = Scripted(answers), Scripted(answers)

    with contextlib.suppress(GpuShareError):
        await RestCluster(reading).get(manifests.NODE, "gpu01")
    with contextlib.suppress(GpuShareError):
        await RestCluster(writing).patch(manifests.NODE, "gpu01", {})

    assert (reading.sent, writing.sent) == (reads, writes)


async def test_answer_of_another_try() -> None:
    """It counts as if it had been the first."""
    found = await RestCluster(Scripted([BUSY, BROKEN, GOOD])).get(manifests.NODE, "gpu01")

    assert found == {"kind": "Node", "metadata": {"name": "gpu01"}}
    with pytest.raises(ClusterUnavailable, match="too many requests"):
        await RestCluster(Scripted([BUSY])).get(manifests.NODE, "gpu01")
