"""The driver that a description stands for."""

from __future__ import annotations

import re
import threading

import pytest

from gpushare.domain.devices import ComputeCapability
from gpushare.domain.links import Ancestor
from gpushare.errors import ConfigurationError
from gpushare.nvml.models import GPU_SLICES, MEMORY_SLICES, MODELS, Model, find_model
from gpushare.nvml.port import Driver, DriverUnavailable, Event, GpuLost, NvLink, Nvml, Process
from gpushare.nvml.profiles import profile_name
from gpushare.nvml.simulated import SimulatedNvml

UUID = re.compile(r"(GPU|MIG)-[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")


def started(*gpus: object, seed: str = "gpu01", **more: object) -> SimulatedNvml:
    nvml = SimulatedNvml.from_mapping({"gpus": list(gpus), **more}, seed=seed)
    nvml.start()
    return nvml


def test_it_is_the_port() -> None:
    """Whoever knows the port can take the simulated driver."""
    nvml: Nvml = started({"model": "T4"})

    assert nvml.count() == 1


def test_a_gpu_as_nvml_tells_it() -> None:
    """Product strings are NVML's, figures the data sheet's."""
    gpu = started({"model": "Tesla-T4", "numa": 1, "bus": "0000:3B:00.0"}).gpu(0)

    assert (gpu.product, gpu.memory_mib, gpu.compute_capability) == (
        "Tesla T4",
        15360,
        ComputeCapability(major=7, minor=5),
    )
    assert (gpu.bus_id, gpu.numa_node, gpu.paths) == ("0000:3b:00.0", 1, ("/dev/nvidia0",))
    assert (gpu.mig_capable, gpu.mig_enabled) == (False, False)


@pytest.mark.parametrize(
    ("name", "product"),
    [
        ("T4", "Tesla T4"),
        ("tesla t4", "Tesla T4"),
        ("A100-SXM4-40GB", "NVIDIA A100-SXM4-40GB"),
        ("NVIDIA-A100-SXM4-40GB", "NVIDIA A100-SXM4-40GB"),
        ("A100-40GB", "NVIDIA A100-SXM4-40GB"),
        ("A100 80GB PCIe", "NVIDIA A100 80GB PCIe"),
        ("H100", "NVIDIA H100 80GB HBM3"),
        ("V100", "Tesla V100-SXM2-16GB"),
        ("P100", "Tesla P100-PCIE-16GB"),
    ],
)
def test_models_by_any_name(name: str, product: str) -> None:
    """As people write them, and as labels show them."""
    model = find_model(name)

    assert model is not None
    assert model.product == product


def test_counted_entries() -> None:
    """One entry for equal GPUs; indices go on over entries."""
    nvml = started({"model": "T4", "count": 2}, {"model": "A10", "name": "NVIDIA A10G", "memory": 24_000})

    assert [nvml.gpu(index).product for index in range(nvml.count())] == ["Tesla T4", "Tesla T4", "NVIDIA A10G"]
    assert nvml.gpu(2).memory_mib == 24_000
    assert len({nvml.gpu(index).bus_id for index in range(3)}) == 3


def test_uuids_follow_from_name_and_index() -> None:
    """The same node has the same ids in every run; another node has others."""
    gpus = ({"model": "A100", "mig": ["1g.5gb", "1g.5gb"]}, {"model": "A100"})
    first, again, other = (started(*gpus, seed=seed) for seed in ("gpu01", "gpu01", "gpu02"))

    uuids = [*(first.gpu(index).uuid for index in (0, 1)), *(mig.uuid for mig in first.gpu(0).mig)]
    assert all(UUID.fullmatch(uuid) for uuid in uuids)
    assert len(set(uuids)) == 4
    assert first.gpu(0) == again.gpu(0)
    assert first.gpu(0).uuid != other.gpu(0).uuid


def test_seed_in_the_description() -> None:
    """A description may name its own seed."""
    with_seed = SimulatedNvml.from_mapping({"seed": "x", "gpus": [{"model": "T4"}]}, seed="y")
    with_seed.start()

    assert with_seed.gpu(0) == started({"model": "T4"}, seed="x").gpu(0)


def test_mig_layout() -> None:
    """Instances in the order of the description, with the figures of their profiles and the device nodes they need."""
    gpu = started({"model": "A100-SXM4-40GB", "mig": ["1g.5gb", "2g.10gb", "3g.20gb"]}).gpu(0)

    assert gpu.mig_enabled
    assert [(mig.index, mig.profile, mig.memory_mib, mig.gpu_slices) for mig in gpu.mig] == [
        (0, "1g.5gb", 4864, 1),
        (1, "2g.10gb", 9856, 2),
        (2, "3g.20gb", 19968, 3),
    ]
    assert len({mig.gpu_instance for mig in gpu.mig}) == 3
    assert gpu.mig[0].paths == ("/dev/nvidia0", "/dev/nvidia-caps/nvidia-cap66", "/dev/nvidia-caps/nvidia-cap67")


def test_mig_on_with_nothing_made() -> None:
    """An empty list is MIG mode without instances; no list is no MIG."""
    nvml = started({"model": "A100", "mig": []}, {"model": "A100"})

    assert [(nvml.gpu(index).mig_enabled, nvml.gpu(index).mig) for index in (0, 1)] == [(True, ()), (False, ())]


def test_driver() -> None:
    """Versions, and the fabric of GPUs that can have one."""
    cluster = "01234567-89ab-cdef-0123-456789abcdef"
    driver = {"version": "560.35.03", "cuda": "12.6", "fabric": {"cluster": cluster.replace("-", ""), "clique": 7}}
    nvml = started({"model": "H100"}, {"model": "A100"}, driver=driver)

    assert nvml.driver() == Driver(version="560.35.03", cuda_version=(12, 6))
    assert [nvml.gpu(index).fabric_clique for index in (0, 1)] == [f"{cluster}.7", None]


def test_topology() -> None:
    """PCI tree and NVLinks, the same from both ends."""
    nvml = started(
        {"model": "A100", "numa": 0, "switch": 0, "nvlink": {1: 12}},
        {"model": "A100", "numa": 0, "switch": 0},
        {"model": "A100", "numa": 0, "board": 5},
        {"model": "A100", "numa": 1, "board": 5, "nvlink": {"switch": 2}},
    )

    pairs = {(0, 1): Ancestor.SWITCH, (0, 2): Ancestor.NUMA_NODE, (0, 3): Ancestor.SYSTEM, (2, 3): Ancestor.BOARD}
    assert {pair: nvml.ancestor(*pair) for pair in pairs} == pairs
    assert {pair: nvml.ancestor(*reversed(pair)) for pair in pairs} == pairs
    assert nvml.nvlinks(0) == (NvLink(remote_bus_id=nvml.gpu(1).bus_id),) * 12
    assert nvml.nvlinks(1) == (NvLink(remote_bus_id=nvml.gpu(0).bus_id),) * 12
    assert [link.to_switch for link in nvml.nvlinks(3)] == [True, True]


@pytest.mark.parametrize(
    ("place", "expected"),
    [
        pytest.param("switch", Ancestor.SWITCH, id="one PCI switch"),
        pytest.param("switches", Ancestor.SWITCHES, id="several PCI switches"),
        pytest.param("bridge", Ancestor.HOST_BRIDGE, id="a host bridge"),
    ],
)
def test_places(place: str, expected: Ancestor) -> None:
    """The closest place of the same number counts, not the NUMA node, and not another number."""
    nvml = started(*({"model": "T4", "numa": 0, place: number} for number in (0, 0, 1)))

    assert nvml.ancestor(0, 1) is expected
    assert nvml.ancestor(0, 2) is Ancestor.NUMA_NODE


def test_no_numa_nodes() -> None:
    """Where NUMA nodes are not known, GPUs meet at the host bridge."""
    assert started({"model": "T4", "count": 2}).ancestor(0, 1) is Ancestor.HOST_BRIDGE


def test_processes() -> None:
    """Those of the description, then those that are set."""
    nvml = started({"model": "T4", "processes": [{"pid": 7, "memory": 512}]})
    assert nvml.processes(0) == (Process(pid=7, memory_mib=512),)

    nvml.set_processes(0, [Process(pid=8)])
    assert nvml.processes(0) == (Process(pid=8),)


def test_events_reach_who_registered() -> None:
    """An XID is heard where its GPU is registered, and nowhere else."""
    nvml = started({"model": "T4", "count": 2})
    heard, unheard = nvml.gpu(0).uuid, nvml.gpu(1).uuid
    assert nvml.register_events(0)

    nvml.inject(Event(uuid=unheard, xid=79))
    nvml.inject(Event(uuid=heard, xid=79))

    assert nvml.wait_event(1.0) == Event(uuid=heard, xid=79)
    assert nvml.wait_event(0.0) is None


def test_an_event_wakes_who_waits() -> None:
    """Nobody has to wait for the end of the time."""
    nvml = started({"model": "T4"})
    nvml.register_events(0)
    event = Event(uuid=nvml.gpu(0).uuid, xid=48)
    found: list[Event | None] = []
    waiting = threading.Thread(target=lambda: found.append(nvml.wait_event(30.0)))
    waiting.start()

    nvml.inject(event)
    waiting.join(10.0)

    assert found == [event]


def test_each_process_has_a_connection_of_its_own() -> None:
    """An agent that ends neither disconnects the one that follows it nor takes its events; the hardware is the same."""
    old = started({"model": "T4", "count": 2})
    new = old.connect()
    with pytest.raises(DriverUnavailable, match="not connected"):
        new.count()
    new.start()
    event = Event(uuid=new.gpu(0).uuid, xid=48)
    for process in (old, new):
        process.register_events(0)

    old.inject(event)
    old.stop()

    assert new.wait_event(0.0) == event
    assert new.count() == 2
    new.lose(1)
    old.start()
    with pytest.raises(GpuLost):
        old.gpu(1)
    old.fail("driver not loaded")
    with pytest.raises(DriverUnavailable, match="driver not loaded"):
        new.count()


def test_a_lost_gpu() -> None:
    """Every question about it fails, until it is back; the others answer."""
    nvml = started({"model": "T4", "count": 2})
    nvml.lose(0)

    for ask in (nvml.gpu, nvml.processes, nvml.nvlinks, nvml.register_events):
        with pytest.raises(GpuLost, match="GPU 0"):
            ask(0)
    assert nvml.gpu(1).index == 1
    nvml.restore(0)
    assert nvml.gpu(0).index == 0


def test_a_driver_that_fails() -> None:
    """Nothing answers, whoever waits is told, and a start after the repair is all that is needed."""
    nvml = started({"model": "T4"})
    nvml.fail("driver not loaded")

    for ask in (nvml.start, nvml.driver, nvml.count, lambda: nvml.gpu(0), lambda: nvml.wait_event(30.0)):
        with pytest.raises(DriverUnavailable, match="driver not loaded"):
            ask()
    nvml.fail("")
    nvml.start()
    assert nvml.count() == 1


def test_a_machine_without_a_driver() -> None:
    """An empty description is a node on which a driver was never installed, not one with a driver and no GPUs."""
    with pytest.raises(DriverUnavailable, match="Library Not Found"):
        SimulatedNvml.from_mapping({}).start()
    assert started().count() == 0


def test_not_started() -> None:
    """A driver that nobody connected to tells nothing."""
    nvml = started({"model": "T4"})
    nvml.stop()
    nvml.stop()

    with pytest.raises(DriverUnavailable, match="not connected"):
        nvml.count()


def test_another_layout_at_run_time() -> None:
    """MIG can be changed under whoever is looking; what does not fit changes nothing."""
    nvml = started({"model": "A100", "mig": ["7g.40gb"]})
    nvml.split(0, ["3g.20gb", "3g.20gb"])
    assert [mig.profile for mig in nvml.gpu(0).mig] == ["3g.20gb", "3g.20gb"]

    with pytest.raises(ConfigurationError, match="fits 2 times"):
        nvml.split(0, ["3g.20gb"] * 3)
    assert len(nvml.gpu(0).mig) == 2
    nvml.split(0, None)
    assert not nvml.gpu(0).mig_enabled


@pytest.mark.parametrize(
    ("mapping", "path", "words"),
    [
        pytest.param({"gpu": []}, "gpu", 'did you mean "gpus"?', id="unknown key"),
        pytest.param({"gpus": {"model": "T4"}}, "gpus", "must be a list", id="no list"),
        pytest.param({"gpus": ["T4"]}, "gpus[0]", "must hold keys", id="a word for a GPU"),
        pytest.param({"gpus": [{}]}, "gpus[0].model", "is missing; known: ", id="no model"),
        pytest.param({"gpus": [{"model": "T5"}]}, "gpus[0].model", "unknown model 'T5'", id="unknown model"),
        pytest.param({"gpus": [{"model": "T4", "numa": "a"}]}, "gpus[0].numa", "whole number", id="no number"),
        pytest.param(
            {"gpus": [{"model": "T4", "count": 2, "uuid": "GPU-1"}]}, "gpus[0].uuid", "several", id="one uuid"
        ),
        pytest.param({"gpus": [{"model": "T4", "count": 0}]}, "gpus[0].count", "at least 1", id="no GPU at all"),
        pytest.param({"gpus": [{"model": "T4", "bus": "3b"}]}, "gpus[0].bus", "0000:3b:00.0", id="no address"),
        pytest.param({"gpus": [{"model": "T4", "mig": []}]}, "gpus[0].mig", "has no MIG", id="MIG on a T4"),
        pytest.param(
            {"gpus": [{"model": "A100", "mig": ["1g.5gb", "9g.1gb"]}]},
            "gpus[0].mig[1]",
            "it has 1g.5gb, ",
            id="profile",
        ),
        pytest.param(
            {"gpus": [{"model": "A100", "mig": ["4g.20gb", "4g.20gb"]}]}, "gpus[0].mig", "fits 1 times", id="too often"
        ),
        pytest.param(
            {"gpus": [{"model": "A100", "mig": ["4g.20gb", "3g.20gb", "1g.5gb"]}]},
            "gpus[0].mig",
            "needs 8 of 7 slices and 9 of 8 parts of the memory",
            id="too much",
        ),
        pytest.param({"gpus": [{"model": "A100", "nvlink": {5: 1}}]}, "gpus[0].nvlink.5", "no other GPU", id="no peer"),
        pytest.param(
            {"gpus": [{"model": "A100", "nvlink": {"x": 1}}]}, "gpus[0].nvlink.x", "index of a GPU", id="peer"
        ),
        pytest.param({"gpus": [], "driver": {"cuda": "12"}}, "driver.cuda", 'write "12.4"', id="no version"),
        pytest.param({"gpus": [], "driver": {"fabric": {}}}, "driver.fabric", "needs a UUID", id="fabric"),
        pytest.param(
            {"gpus": [{"model": "T4", "processes": [{"memory": -1}]}]},
            "gpus[0].processes[0].memory",
            "number",
            id="process",
        ),
    ],
)
def test_bad_descriptions(mapping: dict[str, object], path: str, words: str) -> None:
    """Where the problem is, and what to write instead."""
    with pytest.raises(ConfigurationError) as refusal:
        SimulatedNvml.from_mapping(mapping)

    assert [problem.path for problem in refusal.value.problems] == [path]
    assert words in refusal.value.problems[0].message


@pytest.mark.parametrize(
    ("model", "name"),
    [pytest.param(model, name, id=f"{model.product} {name}") for model in MODELS for name in model.profiles],
)
def test_the_tables_agree_with_the_naming(model: Model, name: str) -> None:
    """Each profile of the tables gets the name that figures alone give it, and its most instances fit."""
    profile = model.profiles[name]
    computed = profile_name(
        gpu_slices=profile.gpu_slices,
        compute_slices=profile.gpu_slices,
        memory_mib=profile.memory_mib,
        gpu_memory_mib=model.memory_mib,
    )

    assert computed == name.removesuffix("+me")
    assert profile.most * profile.gpu_slices <= GPU_SLICES
    assert profile.most * profile.memory_slices <= MEMORY_SLICES


def test_a_compute_instance_is_named_by_both() -> None:
    """`1c.3g.20gb` is one slice of compute in three of memory and copy engines."""
    named = profile_name(gpu_slices=3, compute_slices=1, memory_mib=19968, gpu_memory_mib=40960)

    assert named == "1c.3g.20gb"
