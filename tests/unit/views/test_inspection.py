"""The table of `kubectl inspect cgpu`, to the letter."""

import pytest

from gpushare.domain.fractions import Dialect, FractionMode, Isolation
from gpushare.views import inspection
from gpushare.views.inspection import InspectedNode, InspectedPod

MODE = FractionMode(dialect=Dialect.ALIYUN)


def node(
    name: str = "gpu01", *pods: InspectedPod, unit: int = 1024, totals: dict[int, int] | None = None, **more
) -> InspectedNode:
    totals = dict.fromkeys(range(4), 15) if totals is None else totals
    return InspectedNode(
        name=name, address="127.0.0.1", unit_mib=unit, totals=totals, pods=pods, **{"mode": MODE} | more
    )


def pod(name: str, namespace: str = "default", pending: int = 0, **gpus: int) -> InspectedPod:
    held = {int(index.removeprefix("gpu")): units for index, units in gpus.items()}
    return InspectedPod(namespace=namespace, name=name, gpus=held, pending=pending)


def lines(text: str) -> list[str]:
    """With a mark where each line ends, since spaces before it count."""
    return [f"{line}|" for line in text.split("\n")]


def test_summary() -> None:
    """As Alibaba's tool prints it, recorded with its own program."""
    found = InspectedNode(
        name="gpu-node-1",
        address="192.168.0.71",
        mode=MODE,
        unit_mib=1024,
        totals={0: 15, 1: 15},
        pods=(pod("a", gpu0=3), pod("b", pending=5)),
    )

    assert lines(inspection.build_summary([found])) == [
        "NAME        IPADDRESS     GPU0(Allocated/Total)  GPU1(Allocated/Total)  PENDING(Allocated)  GPU Memory(GiB)|",
        "gpu-node-1  192.168.0.71  3/15                   0/15                   5                   8/30|",
        "-------------------------------------------------------------|",
        "Allocated/Total GPU Memory In Cluster:|",
        "8/30 (26%)  |",
    ]


def test_details() -> None:
    """As Alibaba's tool prints it, recorded with its own program: a pod on two GPUs stands once."""
    found = InspectedNode(
        name="gpu-node-1",
        address="192.168.0.71",
        mode=MODE,
        unit_mib=1,
        totals=dict.fromkeys(range(4), 11178),
        pods=(pod("a-0", gpu1=2048), pod("m-0", "team-a", gpu0=1536, gpu2=1536)),
    )

    assert lines(inspection.build_details([found])) == [
        "|",
        "NAME:       gpu-node-1|",
        "IPADDRESS:  192.168.0.71|",
        "|",
        "NAME         NAMESPACE   GPU0(Allocated)  GPU1(Allocated)  GPU2(Allocated)  GPU3(Allocated)  |",
        "m-0          team-a      1536             0                1536             0                |",
        "a-0          default     0                2048             0                0                |",
        "Allocated :  5120 (11%)  |",
        "Total :      44712       |",
        "------------------------------------------------------------|",
        "|",
        "|",
        "Allocated/Total GPU Memory In Cluster:  5120/44712 (11%)  |",
    ]


def test_spread_job() -> None:
    """Three pods of four GiB on four GPUs of fifteen."""
    text = inspection.build_summary([node("gpu01", pod("a", gpu0=4), pod("b", gpu1=4), pod("c", gpu3=4))])

    assert "4/15                   4/15                   0/15                   4/15                   12/60\n" in text
    assert text.endswith("12/60 (20%)  ")


@pytest.mark.parametrize(
    ("nodes", "row"),
    [
        pytest.param([node("b"), node("a")], 1, id="by name"),
        pytest.param([node("a"), node("b", totals={0: 24})], 1, id="fewer GPUs"),
    ],
)
def test_rows(nodes: list[InspectedNode], row: int) -> None:
    """Nodes stand by name; GPUs that a node has not got show 0/0."""
    found = inspection.build_summary(nodes).split("\n")

    assert [line.split()[0] for line in found[1:3]] == ["a", "b"]
    assert found[2].split()[2:] in (["0/15"] * 4 + ["0/60"], ["0/24", "0/0", "0/0", "0/0", "0/24"])


def test_two_units() -> None:
    """Nodes in the dialect of HAMi count in MiB, in a table of their own."""
    hami = node("h", unit=1, totals={0: 15360}, mode=FractionMode(dialect=Dialect.HAMI))

    first, second = inspection.build_summary([hami, node("a")]).split("\n\n")

    assert (first.split("\n")[0].split()[-1], second.split("\n")[0].split()[-1]) == ("Memory(GiB)", "Memory(MiB)")
    assert second.endswith("0/15360 (0%)  ")


@pytest.mark.parametrize(
    ("unit", "total", "says"),
    [
        pytest.param(1024, 15, "GiB", id="GiB"),
        pytest.param(1024, 140, "GiB", id="GiB of a large GPU"),
        pytest.param(1, 15360, "MiB", id="MiB"),
        pytest.param(256, 60, "256MiB", id="coarse"),
        pytest.param(8, 17971, "8MiB", id="grown"),
    ],
)
def test_unit(unit: int, total: int, says: str) -> None:
    """In which unit a node counts is known, not guessed by how much it has."""
    header = inspection.build_summary([node("a", unit=unit, totals={0: total})]).splitlines()[0]

    assert header.endswith(f"GPU Memory({says})")


def test_document() -> None:
    """Programs get the tier besides, and each pod."""
    mode = FractionMode(dialect=Dialect.HAMI, isolation=Isolation.MPS)

    (found,) = inspection.build_document([node("h", pod("a", gpu0=3, pending=1), mode=mode)])["nodes"]

    assert (found["isolation"], found["used"], found["gpus"][0]) == ("mps", 4, {"index": 0, "total": 15, "used": 3})
    assert found["pods"] == [{"namespace": "default", "name": "a", "gpus": {"0": 3}, "pending": 1}]


def test_nothing() -> None:
    """Without nodes there is nothing to print."""
    assert inspection.build_summary([]) == inspection.build_details([]) == ""
