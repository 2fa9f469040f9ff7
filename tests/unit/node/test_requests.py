"""Whether a node has room for a pod."""

from __future__ import annotations

from typing import Any

import pytest

from gpushare.sandbox.node import requests

ALLOCATABLE = {"cpu": "4", "memory": "1Gi", "ephemeral-storage": "100", "pods": "3", "example.com/lost": "0"}


def pod_of(*containers: dict[str, str], init: tuple[dict[str, str], ...] = ()) -> dict[str, Any]:
    def spelled(listed: dict[str, str]) -> dict[str, Any]:
        return {"name": "c", "resources": {"limits": listed}}

    return {"spec": {"containers": list(map(spelled, containers)), "initContainers": list(map(spelled, init))}}


@pytest.mark.parametrize(
    ("pod", "others", "expected"),
    [
        pytest.param(pod_of({"cpu": "4"}), [], None, id="just fits"),
        pytest.param(
            pod_of({"cpu": "2500m"}, {"cpu": "1"}),
            [pod_of({"cpu": "1"})],
            ("OutOfcpu", "Node didn't have enough resource: cpu, requested: 3500, used: 1000, capacity: 4000"),
            id="containers add up",
        ),
        pytest.param(pod_of({"cpu": "1"}, init=({"cpu": "4"}, {"cpu": "3"})), [], None, id="init containers do not"),
        pytest.param(
            pod_of({"memory": "2Gi"}),
            [],
            (
                "OutOfmemory",
                "Node didn't have enough resource: memory, requested: 2147483648, used: 0, capacity: 1073741824",
            ),
            id="memory",
        ),
        pytest.param(
            pod_of({}),
            [pod_of({})] * 3,
            ("OutOfpods", "Node didn't have enough resource: pods, requested: 1, used: 3, capacity: 3"),
            id="too many pods",
        ),
        pytest.param(
            pod_of({"example.com/lost": "1"}),
            [],
            (
                "OutOfexample.com/lost",
                "Node didn't have enough resource: example.com/lost, requested: 1, used: 0, capacity: 0",
            ),
            id="a resource that the node once had",
        ),
        pytest.param(pod_of({"example.com/never": "1"}), [], None, id="a resource that is not the node's business"),
        pytest.param(pod_of({"example.com/judged": "9"}), [], None, id="a resource that the device manager gave"),
    ],
)
def test_shortage(pod: dict[str, Any], others: list[dict[str, Any]], expected: tuple[str, str] | None) -> None:
    """Reason and text are a kubelet's."""
    assert requests.find_shortage(pod, others, ALLOCATABLE, exempt=["example.com/judged"]) == expected


def test_limits() -> None:
    """Only extended resources are asked of plugins."""
    container = {"resources": {"limits": {"cpu": "1", "nvidia.com/gpu": "2", "memory": "1Gi"}}}
    assert requests.limits_of(container) == {"nvidia.com/gpu": 2}
    assert requests.limits_of({}) == {}


def test_order_of_containers() -> None:
    """Init containers first; what they hold is free again unless they go on running."""
    pod = {
        "spec": {
            "containers": [{"name": "main"}],
            "initContainers": [{"name": "first"}, {"name": "sidecar", "restartPolicy": "Always"}],
        }
    }
    found = [(container["name"], is_reusable) for container, is_reusable in requests.containers_of(pod)]
    assert found == [("first", True), ("sidecar", False), ("main", False)]
