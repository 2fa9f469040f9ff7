"""What is counted for metrics."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from gpushare import names
from gpushare.domain.conditions import Condition
from gpushare.domain.gpunode import Config, GPUNode, GPUNodeStatus
from gpushare.plan import figures
from gpushare.plan.figures import build_figures
from support.snapshots import node, policy, snapshot


def condition(kind: str, status: str = "True", reason: str = "R") -> Condition:
    return Condition(type=kind, status=status, reason=reason)


@pytest.mark.parametrize(
    ("policies", "expected"),
    [
        pytest.param((), figures.FAILED, id="no policy"),
        pytest.param((replace(policy(), state="ready"),), figures.READY, id="ready"),
        pytest.param(
            (replace(policy(), state="notReady", conditions=(condition("Error", reason="OperandNotReady"),)),),
            figures.NOT_READY,
            id="not ready yet",
        ),
        pytest.param(
            (replace(policy(), state="notReady", conditions=(condition("Error", reason="ReconcileFailed"),)),),
            figures.FAILED,
            id="failed",
        ),
        pytest.param((replace(policy("a"), state="notReady"), replace(policy("b"), state="ready")), 0, id="the oldest"),
    ],
)
def test_reconciliation(policies: tuple[Any, ...], expected: int) -> None:
    """As NVIDIA's operator counts it."""
    assert build_figures(snapshot(policies=policies)).reconciliation == expected


def test_nodes() -> None:
    """Nodes with GPUs, and of those that an agent serves what is wrong with them."""
    conditions = (condition("ConfigApplied", "False", "Refused"), condition("AgentReady"), condition("X", "Unknown"))
    served = GPUNode(name="gpu01", config=Config(content="version: v1"), status=GPUNodeStatus(conditions=conditions))
    found = build_figures(
        snapshot(
            node("gpu01", **{names.LABEL_PRESENT: "true"}),
            node("gpu02", **{names.LABEL_PRESENT: "false"}),
            gpu_nodes=(served, GPUNode(name="gpu03")),
        )
    )

    assert (found.gpu_nodes, found.discovered) == (1, True)
    assert [(each.node, each.config.content, [one.type for one in each.unmet]) for each in found.nodes] == [
        ("gpu01", "version: v1", ["ConfigApplied"]),
        ("gpu03", "", []),
    ]
