"""Annotations of a Binding for tools of HAMi and Alibaba, in their own forms."""

from __future__ import annotations

import json

from gpushare.domain.fractions import Decision, Dialect, Grant
from gpushare.placement.shapes import kinds_of
from gpushare.scheduler import marks
from gpushare.scheduler.books import Placed, Stage
from support.placements import ALIYUN, device, node_of
from support.schedulers import pod


def build(decision: Decision, asked: dict, node: str = "n1") -> dict[str, str]:
    kinds = kinds_of(asked)
    placed = Placed(
        uid=decision.pod_uid, namespace="ns", name="a", node=node, decision=decision, kinds=kinds, stage=Stage.RESERVED
    )
    mode = {} if decision.dialect is Dialect.HAMI else {"mode": ALIYUN}
    return marks.build(placed, asked, node_of([device(0), device(1)], **mode, name=node))


def test_hami() -> None:
    """A slot for each container, init containers first, an empty one for those without a GPU."""
    decision = Decision(
        pod_uid="u",
        dialect=Dialect.HAMI,
        shape="s",
        containers={"prepare": (Grant("GPU-0", 3000, 30),), "main": (Grant("GPU-0", 5000, 0), Grant("GPU-1", 5000, 0))},
    )
    asked = pod("a", {"name": "side"}, {"name": "main"}, initContainers=[{"name": "plain"}, {"name": "prepare"}])
    found = build(decision, asked)

    assert found["hami.io/vgpu-devices-allocated"] == (
        ";GPU-0,NVIDIA,3000,30:;;GPU-0,NVIDIA,5000,0:GPU-1,NVIDIA,5000,0:;"
    )
    assert found["hami.io/vgpu-node"] == "n1"
    assert found["hami.io/vgpu-time"].isdecimal()
    assert Decision.from_annotation(found["gpushare.dev/decision"]) == decision


def test_aliyun() -> None:
    """One GPU by its index; several as JSON by position of the container."""
    one = Decision(pod_uid="u", dialect=Dialect.ALIYUN, shape="s", containers={"main": (Grant("GPU-1", 4096, 0, 4),)})
    found = build(one, pod("a", {"name": "main"}))
    assert {name: value for name, value in found.items() if name.startswith("ALIYUN") and "TIME" not in name} == {
        "ALIYUN_COM_GPU_MEM_IDX": "1",
        "ALIYUN_COM_GPU_MEM_POD": "4",
        "ALIYUN_COM_GPU_MEM_DEV": "15",
        "ALIYUN_COM_GPU_MEM_ASSIGNED": "true",
    }

    grants = (Grant("GPU-0", 2048, 0, 2), Grant("GPU-1", 2048, 0, 2))
    two = Decision(pod_uid="u", dialect=Dialect.ALIYUN, shape="s", containers={"main": grants})
    found = build(two, pod("a", {"name": "side"}, {"name": "main"}))
    assert json.loads(found["scheduler.framework.gpushare.allocation"]) == {"1": {"0": 2, "1": 2}}
    assert found["ALIYUN_COM_GPU_MEM_POD"] == "4"


def test_aliyun_with_init_containers() -> None:
    """What the pod takes at its busiest moment: an init container is gone before the others begin, a sidecar is not."""
    units = {"init": 6, "side": 1, "a": 2, "b": 3}
    containers = {name: (Grant("GPU-1", 1024 * each, 0, each),) for name, each in units.items()}
    decision = Decision(pod_uid="u", dialect=Dialect.ALIYUN, shape="s", containers=containers)
    inits = [{"name": "init"}, {"name": "side", "restartPolicy": "Always"}]
    found = build(decision, pod("a", {"name": "a"}, {"name": "b"}, initContainers=inits))

    assert found["ALIYUN_COM_GPU_MEM_POD"] == "6"
