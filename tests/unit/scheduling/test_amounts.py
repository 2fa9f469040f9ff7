"""What pods ask for and nodes offer."""

from __future__ import annotations

import hypothesis.strategies as st
import pytest
from hypothesis import given

from gpushare.sandbox.scheduling import amounts
from support import workload_objects as objects


def container(**requests):
    return {"name": "c", "resources": {"requests": requests}}


def pod(*containers, init=(), **spec):
    return objects.pod(spec={"containers": list(containers), "initContainers": list(init), **spec})


@pytest.mark.parametrize(
    ("asking", "expected"),
    [
        pytest.param(pod(container()), {"pods": 1}, id="nothing"),
        pytest.param(pod({"name": "c", "resources": {"requests": None}}), {"pods": 1}, id="null"),
        pytest.param(pod(container(cpu="0.5"), container(cpu="250m")), {"cpu": 750, "pods": 1}, id="containers add up"),
        pytest.param(pod(container(memory="1Gi")), {"memory": 2**30, "pods": 1}, id="memory in bytes"),
        pytest.param(pod(container(**{"nvidia.com/gpu": "2"})), {"nvidia.com/gpu": 2, "pods": 1}, id="extended"),
        pytest.param(pod(container(cpu="1"), init=[container(cpu="3")]), {"cpu": 3000, "pods": 1}, id="hungry init"),
        pytest.param(
            pod(container(cpu="2"), init=[container(cpu="1") | {"restartPolicy": "Always"}, container(cpu="4")]),
            {"cpu": 5000, "pods": 1},
            id="sidecar beside init",
        ),
        pytest.param(
            pod(container(cpu="2"), init=[container(cpu="1") | {"restartPolicy": "Always"}]),
            {"cpu": 3000, "pods": 1},
            id="sidecar beside containers",
        ),
        pytest.param(pod(container(cpu="1"), overhead={"cpu": "100m"}), {"cpu": 1100, "pods": 1}, id="overhead"),
        pytest.param(pod(container(cpu="0.0001")), {"cpu": 1, "pods": 1}, id="a little is something"),
    ],
)
def test_requested(asking, expected):
    """A pod asks for what a real scheduler counts."""
    assert amounts.requested(asking) == expected


def test_allocatable():
    """A node offers what its kubelet says, and nothing before that."""
    assert amounts.allocatable(objects.node(gpu="4"))["nvidia.com/gpu"] == 4
    assert amounts.allocatable({"metadata": {"name": "new"}}) == {}


@pytest.mark.parametrize(
    ("phase", "expected"), [("Pending", True), ("Running", True), ("Succeeded", False), ("Failed", False)]
)
def test_is_counted(phase, expected):
    """A pod takes room until it has ended."""
    assert amounts.is_counted(objects.pod(phase=phase)) is expected


@given(st.lists(st.dictionaries(st.sampled_from(["cpu", "memory", "gpu"]), st.integers(0, 99)), max_size=5))
def test_add(parts):
    """Amounts add up, whatever the order."""
    forward, backward = {}, {}
    for part in parts:
        amounts.add(forward, part)
    for part in reversed(parts):
        amounts.add(backward, part)

    assert forward == backward
