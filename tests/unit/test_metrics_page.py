"""docs/metrics.md tells every metric that there is, as the processes themselves tell it. Rewritten by `--update-golden`."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from pathlib import Path

import pytest
from prometheus_client import Metric
from prometheus_client.parser import text_string_to_metric_families

from gpushare.agent import monitoring as agent_monitoring
from gpushare.agent.deciding import Assignment, Decider
from gpushare.agent.facts import Counts, Facts
from gpushare.agent.options import AgentOptions
from gpushare.controller import monitoring as controller_monitoring
from gpushare.controller.looping import Passes
from gpushare.domain.conditions import Condition
from gpushare.domain.gpunode import Config
from gpushare.host.files import HostFiles
from gpushare.kubelet.counting import Call
from gpushare.kubelet.lifecycle import Standing
from gpushare.mps import monitoring as mps_monitoring
from gpushare.placement.quotas import Charge, Quota
from gpushare.plan.figures import Figures, NodeFigures
from gpushare.scheduler import monitoring as scheduler_monitoring
from gpushare.scheduler.books import Books
from gpushare.scheduler.flights import Flights
from gpushare.scheduler.timing import Spread
from gpushare.serving.http import Handler, Request
from gpushare.serving.tls import Place, ServingCertificate
from support.inventories import gpu, node, split_gpu
from support.memory_cluster import MemoryCluster

PAGE = Path(__file__).parents[2] / "docs/metrics.md"
GPU = "nvidia.com/gpu"


def agent(tmp_path: Path) -> Handler:
    """One that has something to tell of every kind."""
    inventory = node(split_gpu(0, "1g.5gb"), gpu(1))
    assignment = Assignment(content="version: v1\ngpushare: {fractions: hami}")
    decision = Decider(AgentOptions(), HostFiles(tmp_path)).decide(assignment, None, inventory, ())
    counts = Counts(errors={("GPU-0", 79): 1}, refusals={"NoRoom": 1})
    counts.kubelet.count_registration(GPU, succeeded=True)
    counts.kubelet.count_call(Call(GPU, "Allocate", "OK"), 0.001)
    facts = Facts(
        decision=decision,
        generation=None,
        inventory=inventory,
        failure="",
        pools=decision.pools,
        standings={GPU: Standing(registered=True)},
        waiting={GPU: ""},
        streams={GPU: 1},
        counts=counts,
    )
    return agent_monitoring.Monitoring(lambda: facts).answer


def controller() -> Handler:
    place = Place(namespace="n", secret="s", owner="o", hosts=())
    facts = controller_monitoring.Facts(
        served=True,
        leading=True,
        passes=Passes(synced=True, done=1, failed=0, seconds=0.1),
        objects={"nodes": 1},
        certificate=ServingCertificate(MemoryCluster(), place, log=logging.getLogger()).gauge(),
    )
    condition = Condition(type="ConfigApplied", status="False", reason="Refused")
    node = NodeFigures(node="gpu01", config=Config(), unmet=(condition,))
    figures = Figures(policy="p", conditions=(condition,), nodes=(node,))
    return controller_monitoring.Monitoring(lambda: facts, lambda: figures).answer


def mps() -> Handler:
    return mps_monitoring.Monitoring(lambda: "", lambda: {GPU: True}).answer


def scheduler() -> Handler:
    place = Place(namespace="n", secret="s", owner="o", hosts=())
    facts = scheduler_monitoring.Facts(
        missing=(),
        leading=True,
        leader_known=False,
        books=Books(Flights(), lambda _: None, lambda _: None),
        waiting=0,
        binds={"bound": 1, "refused": 0},
        verdicts={"changed": 1},
        corrections=0,
        strangers=0,
        spreads={"filter": Spread()},
        quotas={"team-a": (Quota(memory_mib=1, cores=1), Charge(0, 0))},
        certificate=ServingCertificate(MemoryCluster(), place, log=logging.getLogger()).gauge(),
    )
    return scheduler_monitoring.Monitoring(lambda: facts).answer


async def families_of(handler: Handler) -> list[Metric]:
    answer = await handler(Request(method="GET", path="/metrics"))
    assert isinstance(answer.body, bytes)
    return list(text_string_to_metric_families(answer.body.decode()))


def rows(families: list[Metric]) -> Iterator[str]:
    yield "| metric | kind | labels | meaning |"
    yield "|---|---|---|---|"
    for family in families:
        name = f"{family.name}_total" if family.type == "counter" else family.name
        labels = ", ".join(f"`{label}`" for label in sorted({*family.samples[0].labels} - {"le"}))
        yield f"| `{name}` | {family.type} | {labels} | {family.documentation} |"


@pytest.mark.parametrize("section", ["agent", "controller", "mps", "scheduler"])
async def test_page(section: str, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    """The table of each process stands between two marks."""
    handlers = {"agent": lambda: agent(tmp_path), "controller": controller, "mps": mps, "scheduler": scheduler}
    handler = handlers[section]()
    table = "\n".join(rows(await families_of(handler)))
    begin, end = f"<!-- {section}: begin -->\n", f"\n<!-- {section}: end -->"
    before, _, rest = PAGE.read_text(encoding="utf-8").partition(begin)
    found, _, after = rest.partition(end)

    if request.config.getoption("--update-golden"):
        PAGE.write_text(f"{before}{begin}{table}{end}{after}", encoding="utf-8")
        return
    assert found == table


async def test_conventions(tmp_path: Path) -> None:
    """Prefix, base units, `_total` for counters only; each has a meaning."""
    for handler in (agent(tmp_path), controller(), mps(), scheduler()):
        for family in await families_of(handler):
            assert family.name.startswith(("gpushare_", "gpu_operator_"))
            assert family.documentation
            assert not family.name.endswith(("_count", "_sum", "_bucket", "_milliseconds", "_mib"))
            if family.type == "histogram":
                assert family.name.endswith("_seconds")
