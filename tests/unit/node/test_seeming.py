"""How long containers run that only seem to."""

from __future__ import annotations

import pytest

from gpushare.sandbox.node import running

JOB = {"metadata": {"ownerReferences": [{"kind": "Job"}]}, "spec": {"restartPolicy": "Never"}}
ALONE = {"metadata": {}, "spec": {"restartPolicy": "Never"}}


@pytest.mark.parametrize(
    ("pod", "words", "seconds"),
    [
        pytest.param(JOB, ("train",), 1.5, id="a Job's work"),
        pytest.param(JOB, ("sleep", "3600"), 3600.0, id="as long as it says"),
        pytest.param(JOB, ("sleep",), 1.5, id="a sleep of nothing"),
        pytest.param({**JOB, "spec": {}}, ("sleep", "5"), None, id="restarted whenever it ends"),
        pytest.param(ALONE, ("sleep", "5"), None, id="a pod of its own stays to be looked at"),
    ],
)
def test_seconds(pod: dict, words: tuple[str, ...], seconds: float | None) -> None:
    """Pods of Jobs end, others stay."""
    assert running.seconds_of(pod, {"image": "any"}, words, init=False, run=1.5) == seconds
