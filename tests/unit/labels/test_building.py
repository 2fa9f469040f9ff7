"""Labels of nodes beyond those of the recorded cases: sharing, mixed models, oddities of hardware."""

from __future__ import annotations

import re
from dataclasses import replace

import hypothesis.strategies as st
import pytest
from hypothesis import given, settings

from gpushare import names
from gpushare.api.sharing import DeviceSelection, Extension, SharingConfig
from gpushare.domain.devices import ComputeCapability, Inventory, MigStrategy
from gpushare.domain.fractions import Dialect, FractionMode, Isolation
from gpushare.domain.pools import Strategy
from gpushare.labels import HostFacts, VirtualGpu, build_labels
from gpushare.labels.gpus import family_of
from gpushare.sharing.building import build_pools
from support.inventories import configs, entry, gpu, inventories, node, sliced, split_gpu, t4s

FACTS = HostFacts(machine="FAKE-SERVER-1")
KEY = re.compile(r"nvidia\.com/[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?")
VALUE = re.compile(r"(([A-Za-z0-9][-A-Za-z0-9_.]{0,61})?[A-Za-z0-9])?")


def labels_of(
    inventory: Inventory,
    config: SharingConfig | None = None,
    strategy: MigStrategy = MigStrategy.NONE,
    facts: HostFacts = FACTS,
) -> dict[str, str]:
    """Labels without their prefix."""
    pools = build_pools(inventory, config or SharingConfig(), strategy).pools
    labels = build_labels(inventory, pools, facts, strategy)
    return {key.removeprefix(names.PREFIX): value for key, value in labels.items()}


def sharing_of(labels: dict[str, str], prefix: str = "gpu") -> tuple[str, ...]:
    return tuple(labels[f"{prefix}.{fact}"] for fact in ("product", "count", "replicas", "sharing-strategy"))


T4 = "nvidia.com/gpu"
A100 = "NVIDIA-A100-SXM4-40GB"


@pytest.mark.parametrize(
    ("inventory", "config", "strategy", "expected"),
    [
        pytest.param(t4s(4), sliced(), MigStrategy.NONE, ("Tesla-T4", "4", "1", "none"), id="unshared"),
        pytest.param(
            t4s(4), sliced(entry(4)), MigStrategy.NONE, ("Tesla-T4-SHARED", "4", "4", "time-slicing"), id="shared"
        ),
        pytest.param(
            t4s(4),
            sliced(entry(4, offered_as="nvidia.com/gpu.shared")),
            MigStrategy.NONE,
            ("Tesla-T4", "4", "4", "time-slicing"),
            id="renamed",
        ),
        pytest.param(
            t4s(4),
            sliced(entry(4), strategy=Strategy.MPS),
            MigStrategy.NONE,
            ("Tesla-T4-SHARED", "4", "4", "mps"),
            id="MPS",
        ),
        pytest.param(t4s(4), sliced(entry(1)), MigStrategy.NONE, ("Tesla-T4", "4", "1", "none"), id="one replica"),
        pytest.param(
            t4s(4),
            sliced(entry(4, "nvidia.com/mig-1g.5gb")),
            MigStrategy.NONE,
            ("Tesla-T4", "4", "1", "none"),
            id="another resource",
        ),
        pytest.param(
            t4s(4), sliced(entry(10**9)), MigStrategy.NONE, ("Tesla-T4", "4", "1", "none"), id="a refused configuration"
        ),
        pytest.param(
            t4s(4),
            sliced(entry(2, devices=DeviceSelection(refs=("3",)))),
            MigStrategy.NONE,
            ("Tesla-T4-SHARED", "4", "2", "time-slicing"),
            id="some devices",
        ),
        pytest.param(
            node(split_gpu(0, "1g.5gb")),
            sliced(entry(4)),
            MigStrategy.NONE,
            (f"{A100}-SHARED", "1", "4", "time-slicing"),
            id="split, but offered whole and shared",
        ),
        pytest.param(
            node(split_gpu(0, "1g.5gb")),
            sliced(),
            MigStrategy.NONE,
            (A100, "1", "0", "none"),
            id="split, offered whole",
        ),
        pytest.param(
            node(split_gpu(0, "1g.5gb", "1g.5gb")),
            sliced(entry(4)),
            MigStrategy.SINGLE,
            (f"{A100}-MIG-1g.5gb-SHARED", "2", "4", "time-slicing"),
            id="single",
        ),
        pytest.param(
            node(split_gpu(0, "1g.5gb"), split_gpu(1)),
            sliced(entry(4)),
            MigStrategy.SINGLE,
            (f"{A100}-MIG-INVALID", "0", "0", ""),
            id="single that does not fit",
        ),
        pytest.param(
            node(split_gpu(0, "1g.5gb"), split_gpu(1, mig_enabled=False)),
            sliced(entry(4)),
            MigStrategy.MIXED,
            (f"{A100}-SHARED", "2", "4", "time-slicing"),
            id="mixed, one whole",
        ),
        pytest.param(
            node(split_gpu(0, "1g.5gb")),
            sliced(entry(4)),
            MigStrategy.MIXED,
            (A100, "1", "0", "none"),
            id="mixed, none whole",
        ),
    ],
)
def test_sharing(inventory: Inventory, config: SharingConfig, strategy: MigStrategy, expected: tuple[str, ...]) -> None:
    """Product, count, replicas and strategy of `nvidia.com/gpu` are those of what is served."""
    assert sharing_of(labels_of(inventory, config, strategy)) == expected


@pytest.mark.parametrize(
    ("mode", "expected"),
    [
        pytest.param(
            FractionMode(dialect=Dialect.HAMI, slots=4, isolation=Isolation.HAMI_CORE),
            ("hami", "hami-core", "4", "time-slicing", "Tesla-T4-SHARED"),
            id="slots",
        ),
        pytest.param(
            FractionMode(dialect=Dialect.ALIYUN), ("aliyun", "none", "0", "none", "Tesla-T4"), id="units of memory"
        ),
        pytest.param(
            FractionMode(dialect=Dialect.HAMI, slots=1, isolation=Isolation.EXCLUSIVE),
            ("hami", "exclusive", "1", "none", "Tesla-T4"),
            id="whole GPUs",
        ),
    ],
)
def test_fractions(mode: FractionMode, expected: tuple[str, ...]) -> None:
    """In whose words pods ask, what holds them to it, and how many fit on a GPU where that is known."""
    labels = labels_of(t4s(2), SharingConfig(extension=Extension(fractions=mode)))

    keys = ("fractions", "isolation", "replicas", "sharing-strategy", "product")
    assert tuple(labels[f"gpu.{key}"] for key in keys) == expected


def test_each_profile_has_its_labels() -> None:
    """With mixed, each profile is shared or not by itself, and what no resource serves has no labels."""
    inventory = node(split_gpu(0, "1g.5gb", "1g.5gb", "1g.5gb+me", "1c.3g.20gb"))
    labels = labels_of(inventory, sliced(entry(3, "nvidia.com/mig-1g.5gb")), MigStrategy.MIXED)

    assert sharing_of(labels, "mig-1g.5gb") == (f"{A100}-MIG-1g.5gb-SHARED", "2", "3", "time-slicing")
    assert sharing_of(labels, "mig-1g.5gb.me") == (f"{A100}-MIG-1g.5gb.me", "1", "1", "none")
    assert labels["mig-1g.5gb.slices.gi"] == "1"
    assert not [key for key in labels if "3g.20gb" in key]


@pytest.mark.parametrize(
    ("gpus", "expected"),
    [
        pytest.param([("A", 1), ("B", 2)], "B", id="most GPUs"),
        pytest.param([("A", 1), ("B", 1)], "A", id="lowest index of equals"),
    ],
)
def test_mixed_models(gpus: list[tuple[str, int]], expected: str) -> None:
    """Always the same model, whatever order facts come in."""
    products = [product for product, count in gpus for _ in range(count)]
    labels = labels_of(node(*(gpu(index, product=product) for index, product in enumerate(products))))

    assert labels["gpu.product"] == expected
    assert labels["gpu.count"] == str(products.count(expected))


def test_only_the_other_model_is_shared() -> None:
    """The labels do not promise for one model what another offers."""
    inventory = node(gpu(0, product="A"), gpu(1, product="A"), gpu(2, product="B"))
    labels = labels_of(inventory, sliced(entry(4, devices=DeviceSelection(refs=("2",)))))

    assert sharing_of(labels) == ("A", "2", "1", "none")


@pytest.mark.parametrize(
    ("version", "family"),
    [
        ("1.3", "tesla"), ("2.1", "fermi"), ("3.5", "kepler"), ("4.0", "undefined"), ("5.2", "maxwell"), ("6.1", "pascal"),
        ("7.0", "volta"), ("7.2", "volta"), ("7.5", "turing"), ("8.0", "ampere"), ("8.6", "ampere"),
        ("8.9", "ada-lovelace"), ("9.0", "hopper"), ("10.0", "blackwell"), ("11.0", "undefined"), ("12.0", "blackwell"),
        ("13.0", "rubin"),
    ],
)  # fmt: skip
def test_families(version: str, family: str) -> None:
    """Names of architectures by compute capability."""
    major, minor = version.split(".")

    assert family_of(ComputeCapability(major=int(major), minor=int(minor))) == family


def test_what_is_not_known_has_no_label() -> None:
    """No memory, no compute capability, no version of a known form: no labels of them, rather than wrong ones."""
    unknown = gpu(0, memory_mib=0, compute_capability=ComputeCapability(major=0, minor=0))
    labels = labels_of(replace(node(unknown), driver_version="r550", cuda_version=None))

    assert not [key for key in labels if key.startswith(("gpu.memory", "gpu.family", "gpu.compute", "cuda"))]


def test_a_version_of_two_parts() -> None:
    """The revision is empty, as feature discovery has it."""
    labels = labels_of(replace(t4s(1), driver_version="550.90"))

    assert (labels["cuda.driver-version.full"], labels["cuda.driver.rev"]) == ("550.90", "")
    assert (labels["cuda.driver.major"], labels["cuda.driver-version.minor"]) == ("550", "90")


def test_instances_that_have_gone() -> None:
    """Pools may be those of a layout that has just changed: an instance without facts has no labels."""
    pools = build_pools(node(split_gpu(0, "1g.5gb", "1g.5gb")), SharingConfig(), MigStrategy.MIXED).pools
    labels = build_labels(node(split_gpu(0, "1g.5gb")), pools, FACTS, MigStrategy.MIXED)

    assert labels["nvidia.com/mig-1g.5gb.count"] == "1"


@pytest.mark.parametrize(
    ("classes", "expected"),
    [
        pytest.param([0x030200, 0x030200], "compute", id="compute"),
        pytest.param([0x030000], "graphics", id="graphics"),
        pytest.param([0x030000, 0x030200], "unknown", id="both"),
        pytest.param([None], "unknown", id="not readable"),
        pytest.param([0x010000], "unknown", id="something else"),
    ],
)
def test_mode(classes: list[int | None], expected: str) -> None:
    """What the PCI classes of the GPUs say together."""
    inventory = node(*(gpu(index, pci_class=number) for index, number in enumerate(classes)))

    assert labels_of(inventory)["gpu.mode"] == expected


@pytest.mark.parametrize(
    ("cliques", "expected"),
    [
        pytest.param(["a.1", "a.1"], "a.1", id="all in one"),
        pytest.param(["a.1", None], "a.1", id="those that are attached"),
        pytest.param(["a.1", "a.2"], None, id="in two"),
        pytest.param([None], None, id="none"),
    ],
)
def test_clique(cliques: list[str | None], expected: str | None) -> None:
    """Only where there is one answer."""
    inventory = node(*(gpu(index, fabric_clique=clique) for index, clique in enumerate(cliques)))

    assert labels_of(inventory).get("gpu.clique") == expected


@pytest.mark.parametrize(
    ("facts", "expected"),
    [
        pytest.param(HostFacts(), {"vgpu.present": "false"}, id="nothing"),
        pytest.param(HostFacts(virtual_gpus=None), {}, id="not readable"),
        pytest.param(
            HostFacts(
                virtual_gpus=(VirtualGpu(host_driver_version="460.16", host_driver_branch="r460_00"),), timestamp=7
            ),
            {
                "vgpu.present": "true",
                "vgpu.host-driver-version": "460.16",
                "vgpu.host-driver-branch": "r460_00",
                "gfd.timestamp": "7",
            },
            id="virtual GPU",
        ),
    ],
)
def test_a_node_without_gpus(facts: HostFacts, expected: dict[str, str]) -> None:
    """Only what is said of the machine itself."""
    assert labels_of(node(), facts=facts) == expected


def test_names_agree() -> None:
    """The labels that other parts select by are spelled in `names` as they are made here."""
    labels = build_labels(t4s(1), {}, FACTS, MigStrategy.MIXED)

    assert {
        names.LABEL_MIG_CAPABLE,
        names.LABEL_MIG_STRATEGY,
        names.LABEL_MPS_CAPABLE,
        names.LABEL_PRODUCT,
    } <= labels.keys()


@settings(max_examples=150, deadline=None)
@given(inventories(), configs(), st.sampled_from(MigStrategy), st.text(max_size=80))
def test_always_legal_and_true(
    inventory: Inventory, config: SharingConfig, strategy: MigStrategy, machine: str
) -> None:
    """Every key and value is one that the API server takes, and no label speaks of shares that nobody serves."""
    pools = build_pools(inventory, config, strategy).pools
    labels = build_labels(inventory, pools, HostFacts(machine=machine), strategy)

    assert all(KEY.fullmatch(key) and VALUE.fullmatch(value) for key, value in labels.items())
    for key, value in labels.items():
        if key.endswith(".replicas") and int(value) > 1:
            base = key.removesuffix(".replicas")
            assert any(pool.base == base and pool.replicas == int(value) for pool in pools.values())
