"""GPUs as agents tell them, read back."""

from __future__ import annotations

from pathlib import Path

import pytest

from gpushare.agent.deciding import Decider
from gpushare.agent.facts import Facts
from gpushare.agent.options import AgentOptions
from gpushare.agent.reporting import build_status
from gpushare.api.parsing import parse_sharing
from gpushare.domain.devices import Inventory, MigStrategy
from gpushare.domain.gpunode import GPUNodeStatus
from gpushare.host.files import HostFiles
from gpushare.plan.hardware import inventory_of
from gpushare.sharing.building import build_pools
from support.inventories import XID_79, gpu, node, split_gpu, t4s

SHARED = "sharing: {timeSlicing: {resources: [{name: nvidia.com/gpu, replicas: 4}]}}"
NODES = [
    pytest.param(t4s(4), id="T4"),
    pytest.param(node(gpu(0), gpu(1, health=XID_79)), id="a sick GPU"),
    pytest.param(node(split_gpu(0), split_gpu(1)), id="MIG"),
    pytest.param(Inventory(), id="no GPU"),
]


def told(inventory: Inventory, tmp_path: Path) -> GPUNodeStatus:
    """What an agent reports of such a node."""
    decision = Decider(AgentOptions(), HostFiles(tmp_path)).decide(None, None, inventory, ())
    facts = Facts(decision=decision, generation=1, failure="", inventory=inventory, pools=decision.pools, standings={})
    return GPUNodeStatus.from_json(build_status(facts))


@pytest.mark.parametrize("inventory", NODES)
def test_round_trip(inventory: Inventory, tmp_path: Path) -> None:
    """What was told once is told again, word for word."""
    status = told(inventory, tmp_path)
    again = told(inventory_of(status), tmp_path)

    assert (again.devices, again.driver_version, again.cuda_version) == (
        status.devices,
        status.driver_version,
        status.cuda_version,
    )


@pytest.mark.parametrize("strategy", list(MigStrategy))
@pytest.mark.parametrize("inventory", NODES)
def test_same_counts(inventory: Inventory, strategy: MigStrategy, tmp_path: Path) -> None:
    """Every resource has as many shares, healthy ones too, as on the node itself."""
    config = parse_sharing(SHARED).config
    assert config is not None
    one, two = (build_pools(each, config, strategy) for each in (inventory, inventory_of(told(inventory, tmp_path))))

    assert {name: (len(pool.shares), pool.healthy) for name, pool in one.pools.items()} == {
        name: (len(pool.shares), pool.healthy) for name, pool in two.pools.items()
    }
    assert one.problems == two.problems
