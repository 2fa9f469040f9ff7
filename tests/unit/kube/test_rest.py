"""What a client makes of answers, whatever carries them."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence

import pytest

from gpushare.domain import manifests
from gpushare.errors import ClusterUnavailable
from gpushare.kube.requests import Request
from gpushare.kube.rest import Answer, RestCluster

pytestmark = pytest.mark.usefixtures("skipped_time")

GOOD = Answer(200, b'{"kind": "Node", "metadata": {"name": "gpu01"}}')
BUSY = Answer(429, b'{"kind": "Status", "message": "too many requests"}')
BROKEN = Answer(500, b'{"kind": "Status", "message": "no leader"}')


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
    ("answers", "sent", "reason"),
    [
        pytest.param([BUSY, BUSY, GOOD], 3, "", id="busy for a moment"),
        pytest.param([BUSY], 5, "too many requests", id="busy for long"),
        pytest.param([BROKEN, GOOD], 1, "no leader", id="it may have been done"),
    ],
)
async def test_busy(answers: Sequence[Answer], sent: int, reason: str) -> None:
    """A server that turns requests away is asked again, some times; whatever else goes wrong is for the caller."""
    transport = Scripted(answers)

    async def patch() -> str:
        node = await RestCluster(transport).patch(manifests.NODE, "gpu01", {})
        return "" if node is not None else "absent"

    if reason:
        with pytest.raises(ClusterUnavailable, match=reason):
            await patch()
    else:
        assert await patch() == ""

    assert transport.sent == sent
