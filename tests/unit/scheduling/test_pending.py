"""Which pods wait, and what could help them."""

from __future__ import annotations

import copy

import pytest

from gpushare.sandbox.scheduling import pending
from gpushare.sandbox.scheduling.configuration import DEFAULT_NAME
from support import workload_objects as objects

WAITING = objects.pod()
BOUND = {**WAITING, "spec": {**WAITING["spec"], "nodeName": "gpu01"}}


@pytest.mark.parametrize(
    ("pod", "expected"),
    [
        pytest.param(objects.pod(), True, id="new"),
        pytest.param(objects.pod(node="gpu01"), False, id="has a node"),
        pytest.param(objects.pod(terminating=True), False, id="going"),
        pytest.param(objects.pod(phase="Failed"), False, id="ended"),
        pytest.param(objects.pod(spec={"schedulerName": "other"}), False, id="of another scheduler"),
        pytest.param(objects.pod(spec={"schedulingGates": [{"name": "wait"}]}), False, id="gated"),
    ],
)
def test_is_pending(pod, expected):
    """Only pods that want this scheduler, now, are placed."""
    assert pending.is_pending(pod, DEFAULT_NAME) is expected


def test_in_order():
    """Priority goes before age."""
    old, young = objects.pod("old", age=9), objects.pod("young", age=1)
    urgent = objects.pod("urgent", spec={"priority": 1000})

    names = [pod["metadata"]["name"] for pod in pending.in_order([young, urgent, old, BOUND], DEFAULT_NAME)]
    assert names == ["urgent", "old", "young"]


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        pytest.param(None, WAITING, True, id="comes"),
        pytest.param(WAITING, {**WAITING, "status": {"phase": "Pending", "conditions": []}}, False, id="status only"),
        pytest.param(WAITING, {**WAITING, "spec": {**WAITING["spec"], "nodeSelector": {}}}, True, id="asks otherwise"),
        pytest.param(WAITING, BOUND, False, id="is bound"),
        pytest.param(BOUND, {**BOUND, "status": {"phase": "Running"}}, False, id="runs"),
        pytest.param(BOUND, {**BOUND, "status": {"phase": "Succeeded"}}, True, id="ends"),
        pytest.param(BOUND, None, True, id="goes"),
        pytest.param(WAITING, None, False, id="goes before it had a node"),
    ],
)
def test_is_relevant(before, after, expected):
    """A pass is made when a pod waits that did not, or when room was made."""
    assert pending.is_relevant(before, after, DEFAULT_NAME) is expected


def test_node_facts():
    """A heartbeat is no reason for a pass; more GPUs are."""
    node = objects.node(gpu="4", conditions={"Ready": "True"})
    beating, grown = copy.deepcopy(node), copy.deepcopy(node)
    beating["status"]["conditions"][0]["lastHeartbeatTime"] = objects.TIME
    grown["status"]["allocatable"]["nvidia.com/gpu"] = "16"

    assert pending.node_facts(node) == pending.node_facts(beating)
    assert pending.node_facts(node) != pending.node_facts(grown)
