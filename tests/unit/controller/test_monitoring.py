"""What the controller tells over HTTP."""

from dataclasses import replace

import pytest

from gpushare.controller.looping import Passes
from gpushare.controller.monitoring import Facts, Monitoring
from gpushare.domain.conditions import Condition
from gpushare.domain.gpunode import Config, ConfigReason, ConfigSource
from gpushare.plan.figures import Figures, NodeFigures
from gpushare.serving.http import Request

FIGURES = Figures(
    policy="p",
    reconciliation=1,
    conditions=(Condition(type="ConfigValid", status="False", reason="KeyNotFound", message="long"),),
    gpu_nodes=3,
    discovered=True,
    nodes=(
        NodeFigures(node="gpu01", config=Config(), unmet=()),
        NodeFigures(
            node="gpu02",
            config=Config(
                source=ConfigSource(namespace="n", name="m", key="any"),
                reason=ConfigReason.LABEL,
                content="version: v1",
            ),
            unmet=(Condition(type="ConfigApplied", status="False", reason="Refused"),),
        ),
    ),
)


async def ask(path: str, facts: Facts) -> tuple[int, str]:
    response = await Monitoring(lambda: facts, lambda: FIGURES).answer(Request(method="GET", path=path))
    assert isinstance(response.body, bytes)
    return response.status, response.body.decode()


def facts(*, served: bool = True, leading: bool = True, synced: bool = True) -> Facts:
    passes = Passes(synced=synced, done=3, failed=1, seconds=0.25)
    return Facts(served=served, leading=leading, passes=passes, objects={"nodes": 2})


@pytest.mark.parametrize(
    ("state", "status", "saying"),
    [
        pytest.param(facts(), 200, "ok", id="working"),
        pytest.param(facts(leading=False, synced=False), 200, "ok", id="waiting for its turn"),
        pytest.param(facts(served=False), 503, "ClusterPolicy and GPUNode", id="no kinds"),
        pytest.param(facts(synced=False), 503, "watches", id="not all is seen"),
        pytest.param(replace(facts(), misnamed="there is no ..."), 503, "there is no", id="another policy was named"),
    ],
)
async def test_ready(state: Facts, status: int, saying: str) -> None:
    """Readiness says why not; health is only that it answers."""
    code, body = await ask("/readyz", state)

    assert code == status
    assert saying in body
    assert await ask("/healthz", state) == (200, "ok\n")


@pytest.mark.parametrize(
    ("state", "saying"),
    [
        pytest.param(replace(facts(), passes=Passes(synced=True, began=100.0), now=150.0), "ok", id="a-pass-runs"),
        pytest.param(
            replace(facts(), passes=Passes(synced=True, began=100.0), now=1000.0),
            "a pass has been running for 900 s",
            id="a-pass-hangs",
        ),
        pytest.param(replace(facts(), now=1000.0), "ok", id="nothing-to-do-for-long"),
        pytest.param(replace(facts(), watches_stand_seconds=30.0), "ok", id="watches-are-busy"),
        pytest.param(
            replace(facts(), watches_stand_seconds=200.0),
            "the watches have been standing still for 200 s",
            id="watches-hang",
        ),
    ],
)
async def test_alive(state: Facts, saying: str) -> None:
    """Health fails where only a restart helps: when a loop stands still."""
    assert await ask("/healthz", state) == (200 if saying == "ok" else 503, f"{saying}\n")


async def test_metrics() -> None:
    """Figures in Prometheus' format."""
    _, body = await ask("/metrics", facts())

    assert 'gpushare_controller_passes_total{result="done"} 3.0' in body
    assert 'gpushare_controller_objects{kind="nodes"} 2.0' in body


async def test_cluster() -> None:
    """The leader tells of the policy and of every node; under the names of NVIDIA's operator what that tells too."""
    _, body = await ask("/metrics", facts())

    assert "gpu_operator_gpu_nodes_total 3.0" in body
    assert "gpu_operator_reconciliation_total 4.0" in body
    assert (
        'gpushare_policy_condition{condition="ConfigValid",policy="p",reason="KeyNotFound",status="False"} 1.0' in body
    )
    assert 'gpushare_node_config_info{by="none",config="none",node="gpu01",revision=""} 1.0' in body
    assert 'by="label",config="any",node="gpu02"' in body
    assert 'gpushare_node_unmet_condition{condition="ConfigApplied",node="gpu02",reason="Refused"} 1.0' in body
    assert 'gpushare_node_unmet_condition{condition="ConfigApplied",node="gpu01"' not in body


async def test_followers_count_nothing_twice() -> None:
    """A replica that waits for its turn tells only of itself."""
    _, body = await ask("/metrics", facts(leading=False))

    assert "gpushare_controller_leading 0.0" in body
    assert "gpu_operator_" not in body
    assert "gpushare_node_" not in body


async def test_anything_else() -> None:
    """What is not there is said."""
    assert (await ask("/", facts()))[0] == 404
