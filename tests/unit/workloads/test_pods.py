"""What controllers ask about a pod."""

from __future__ import annotations

import pytest

from gpushare.sandbox.workloads import pods
from support import workload_objects as objects


@pytest.mark.parametrize(
    ("pod", "min_ready", "expected"),
    [
        pytest.param(objects.pod(), 0, None, id="not ready"),
        pytest.param(objects.pod(ready=True), 0, 0, id="ready"),
        pytest.param(objects.pod(ready=True), 30, 20, id="not for long enough"),
        pytest.param(objects.pod(ready=True), 5, 0, id="for long enough"),
    ],
)
def test_seconds_until_available(pod, min_ready, expected):
    """A pod is available when it has been ready for the time that its owner asks."""
    assert pods.seconds_until_available(pod, min_ready, objects.NOW + 10) == expected


def test_is_active():
    """Pods that have ended or are going do not count."""
    assert pods.is_active(objects.pod())
    assert not pods.is_active(objects.pod(phase="Failed"))
    assert not pods.is_active(objects.pod(terminating=True))


def test_node_of():
    """Where a pod is, or will be."""
    term = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["gpu02"]}]}
    affinity = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}}}

    assert pods.node_of(objects.pod(node="gpu01")) == "gpu01"
    assert pods.node_of(objects.pod(spec={"affinity": affinity})) == "gpu02"
    assert pods.node_of(objects.pod()) == ""
