"""Taints and tolerations."""

from __future__ import annotations

import pytest

from gpushare.sandbox.scheduling import taints
from support import workload_objects as objects

TAINT = {"key": "nvidia.com/gpu", "value": "present", "effect": "NoSchedule"}


@pytest.mark.parametrize(
    ("toleration", "expected"),
    [
        pytest.param({"operator": "Exists"}, True, id="everything"),
        pytest.param({"key": "nvidia.com/gpu", "operator": "Exists"}, True, id="the key"),
        pytest.param(
            {"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"}, True, id="key and effect"
        ),
        pytest.param({"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoExecute"}, False, id="other effect"),
        pytest.param({"key": "nvidia.com/gpu", "operator": "Equal", "value": "present"}, True, id="the value"),
        pytest.param({"key": "nvidia.com/gpu", "value": "present"}, True, id="Equal is the default"),
        pytest.param({"key": "nvidia.com/gpu"}, False, id="other value"),
        pytest.param({"key": "other", "operator": "Exists"}, False, id="other key"),
        pytest.param({}, False, id="nothing"),
    ],
)
def test_is_tolerated(toleration, expected):
    """A toleration bears what it names."""
    assert taints.is_tolerated(TAINT, [toleration]) is expected


def test_untolerated():
    """Only the effects that matter are looked at."""
    soft = {"key": "soft", "effect": "PreferNoSchedule"}
    node = objects.node(taints=[TAINT, soft])

    assert taints.untolerated(node, [], ("NoSchedule", "NoExecute")) == [TAINT]
    assert taints.untolerated(node, [{"operator": "Exists"}], ("NoSchedule",)) == []
    assert taints.untolerated(objects.node(), [], ("NoSchedule",)) == []


@pytest.mark.parametrize(
    ("tolerations", "expected"),
    [
        pytest.param([], 0.0, id="none"),
        pytest.param([{"operator": "Exists"}], None, id="for ever"),
        pytest.param([{"operator": "Exists", "tolerationSeconds": 300}], 300.0, id="five minutes"),
        pytest.param([{"operator": "Exists"}, {"operator": "Exists", "tolerationSeconds": 5}], 5.0, id="the shortest"),
        pytest.param([{"operator": "Exists", "tolerationSeconds": -1}], 0.0, id="less than nothing"),
    ],
)
def test_seconds_tolerated(tolerations, expected):
    """How long a pod bears a taint that drives it out."""
    taint = {"key": taints.UNREACHABLE, "effect": taints.NO_EXECUTE}

    assert taints.seconds_tolerated(taint, tolerations) == expected
