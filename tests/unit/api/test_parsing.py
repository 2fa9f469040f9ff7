"""Sharing configurations: what is understood, what is refused, and in which words."""

from __future__ import annotations

import math

import hypothesis.strategies as st
import pytest
import yaml
from hypothesis import given, settings

from gpushare.api.parsing import parse_sharing
from gpushare.api.sharing import DeviceSelection, IdStrategy, ListStrategy, OnShrink, SharedResource, SharingConfig
from gpushare.domain.devices import MigStrategy
from gpushare.domain.fractions import Dialect, FractionMode, Isolation, Placement
from gpushare.domain.pools import Allocation, Strategy


def shared(entry: str, block: str = "timeSlicing", more: str = "") -> str:
    """A text with one entry, given in flow style."""
    return f"version: v1\nsharing:\n  {block}:\n{more}    resources:\n    - {entry}\n"


def config_of(text: str) -> SharingConfig:
    parsed = parse_sharing(text)
    assert parsed.problems == ()
    assert parsed.config is not None
    return parsed.config


def entry_of(text: str) -> SharedResource:
    return config_of(text).resources[0]


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("", id="empty"),
        pytest.param("\n \n", id="blank"),
        pytest.param("# nothing here\n", id="comments"),
        pytest.param("null\n", id="null"),
        pytest.param("\ufeff", id="byte order mark"),
        pytest.param("{}", id="empty mapping"),
        pytest.param("version: v1\n", id="version only"),
        pytest.param("version:\n", id="version without a value"),
        pytest.param("sharing:\nflags:\nimex:\nresources:\ngpushare:\n", id="nulls"),
        pytest.param("sharing:\n  mps:\n", id="null mps"),
        pytest.param("flags: {plugin: , gfd: }", id="null blocks of flags"),
        pytest.param(
            "flags:\n"
            "  {migStrategy: , failOnInitError: , mpsRoot: , nvidiaDriverRoot: , nvidiaDevRoot: , gdrcopyEnabled: ,\n"
            "  useNodeFeatureAPI: , deviceDiscoveryStrategy: , gfd: {oneshot: , sleepInterval: , outputFile: },\n"
            "  plugin: {deviceListStrategy: , deviceIDStrategy: , cdiAnnotationPrefix: , nvidiaCTKPath: }}\n"
            "imex: {channelIDs: , required: }\n",
            id="null flags",
        ),
    ],
)
def test_default(text: str) -> None:
    """What says nothing means the defaults: nothing is shared."""
    assert config_of(text) == SharingConfig()


def test_time_slicing() -> None:
    """The configuration of the walk-through."""
    config = config_of(
        "version: v1\n"
        "flags:\n"
        "  migStrategy: none\n"
        "sharing:\n"
        "  timeSlicing:\n"
        "    renameByDefault: false\n"
        "    failRequestsGreaterThanOne: true\n"
        "    resources:\n"
        "    - name: nvidia.com/gpu\n"
        "      replicas: 4\n"
    )

    assert config.strategy is Strategy.TIME_SLICING
    assert config.flags.mig_strategy is MigStrategy.NONE
    assert config.fail_requests_greater_than_one
    assert config.resources == (
        SharedResource(
            path="sharing.timeSlicing.resources[0]", name="nvidia.com/gpu", replicas=4, offered_as="nvidia.com/gpu"
        ),
    )


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        pytest.param("4", 4, id="decimal"),
        pytest.param("4.0", 4, id="whole float"),
        pytest.param("1e1", 10, id="exponent"),
        pytest.param("010", 8, id="octal as in YAML 1.1"),
        pytest.param("0o10", 8, id="octal as in YAML 1.2"),
        pytest.param("08", 8, id="no octal digit"),
        pytest.param("0x10", 16, id="hexadecimal"),
        pytest.param("1", 1, id="one"),
    ],
)
def test_replicas(written: str, expected: int) -> None:
    """Numbers mean what they mean to kubectl."""
    assert entry_of(shared(f"{{name: gpu, replicas: {written}}}")).replicas == expected


def test_one_replica_is_not_shared() -> None:
    """Sharing is turned off for a group of nodes by replicas 1, without another text."""
    config = config_of(shared("{name: gpu, replicas: 1}"))

    assert config.strategy is Strategy.NONE


@pytest.mark.parametrize(
    ("entry", "more", "expected"),
    [
        pytest.param("{name: gpu, replicas: 2}", "", "nvidia.com/gpu", id="not renamed"),
        pytest.param(
            "{name: gpu, replicas: 2}", "    renameByDefault: true\n", "nvidia.com/gpu.shared", id="by default"
        ),
        pytest.param("{name: gpu, replicas: 2, rename: slice}", "", "nvidia.com/slice", id="explicit"),
        pytest.param(
            "{name: gpu, replicas: 2, rename: nvidia.com/s}", "    renameByDefault: true\n", "nvidia.com/s", id="both"
        ),
        pytest.param("{name: gpu, replicas: 1}", "    renameByDefault: true\n", "nvidia.com/gpu", id="not shared"),
    ],
)
def test_rename(entry: str, more: str, expected: str) -> None:
    """An explicit name counts; else the suffix, where it is wanted and the resource is shared at all."""
    assert entry_of(shared(entry, more=more)).offered_as == expected


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        pytest.param("all", DeviceSelection(), id="all"),
        pytest.param("2", DeviceSelection(count=2), id="count"),
        pytest.param("[0, 3]", DeviceSelection(refs=("0", "3")), id="indices"),
        pytest.param('["0"]', DeviceSelection(refs=("0",)), id="index as text"),
        pytest.param("[1:0]", DeviceSelection(refs=("1:0",)), id="MIG index, which YAML 1.1 takes for 60"),
        pytest.param("[0:1, 12:30]", DeviceSelection(refs=("0:1", "12:30")), id="MIG indices"),
        pytest.param(
            "[GPU-4a0d2b52-2b3a-4a56-b2a4-5f4d6a3b2c1d, MIG-4a0d2b52-2b3a-4a56-b2a4-5f4d6a3b2c1d]",
            DeviceSelection(
                refs=("GPU-4a0d2b52-2b3a-4a56-b2a4-5f4d6a3b2c1d", "MIG-4a0d2b52-2b3a-4a56-b2a4-5f4d6a3b2c1d")
            ),
            id="UUIDs",
        ),
        pytest.param(
            "[MIG-GPU-4a0d2b52-2b3a-4a56-b2a4-5f4d6a3b2c1d/7/0]",
            DeviceSelection(refs=("MIG-GPU-4a0d2b52-2b3a-4a56-b2a4-5f4d6a3b2c1d/7/0",)),
            id="MIG UUID of old drivers",
        ),
    ],
)
def test_devices(written: str, expected: DeviceSelection) -> None:
    """Every form in which devices can be named."""
    assert entry_of(shared(f"{{name: gpu, replicas: 2, devices: {written}}}")).devices == expected


@pytest.mark.parametrize(
    ("more", "block", "expected"),
    [
        pytest.param("", "timeSlicing", False, id="time slicing allows"),
        pytest.param("    failRequestsGreaterThanOne: null\n", "timeSlicing", False, id="null is unset"),
        pytest.param("    failRequestsGreaterThanOne: true\n", "timeSlicing", True, id="forbidden"),
        pytest.param("", "mps", True, id="MPS forbids"),
        pytest.param("    failRequestsGreaterThanOne: false\n", "mps", False, id="MPS allows when told"),
    ],
)
def test_fail_requests_greater_than_one(more: str, block: str, expected: bool) -> None:
    """Unset, it is a matter of the strategy."""
    config = config_of(shared("{name: gpu, replicas: 2}", block, more))

    assert config.fail_requests_greater_than_one is expected


def test_flags() -> None:
    """Every flag that a file can hold, in its own type."""
    config = config_of(
        "flags:\n"
        "  migStrategy: mixed\n"
        "  failOnInitError: no\n"
        "  mpsRoot: /run/nvidia/mps\n"
        "  nvidiaDriverRoot: /run/nvidia/driver\n"
        "  nvidiaDevRoot: /\n"
        "  gdrcopyEnabled: on\n"
        "  gdsEnabled: false\n"
        "  mofedEnabled: y\n"
        "  useNodeFeatureAPI: true\n"
        "  deviceDiscoveryStrategy: nvml\n"
        "  plugin:\n"
        "    passDeviceSpecs: true\n"
        "    deviceListStrategy: [envvar, cdi-cri]\n"
        "    deviceIDStrategy: index\n"
        "    cdiAnnotationPrefix: cdi.example.com/\n"
        "    nvidiaCTKPath: /usr/local/bin/nvidia-ctk\n"
        "    containerDriverRoot: /driver\n"
        "    sharedDevicesAllocationPolicy: packed\n"
        "  gfd: {oneshot: true, noTimestamp: true, sleepInterval: 1m30s, outputFile: '', machineTypeFile: /x}\n"
    )

    flags = config.flags
    assert (flags.mig_strategy, flags.fail_on_init_error, flags.mofed_enabled) == (MigStrategy.MIXED, False, True)
    assert (flags.gdrcopy_enabled, flags.gds_enabled) == (True, False)
    assert flags.plugin.device_list_strategy == (ListStrategy.ENVVAR, ListStrategy.CDI_CRI)
    assert flags.plugin.device_id_strategy is IdStrategy.INDEX
    assert config.allocation is Allocation.PACKED
    assert (flags.gfd.sleep_interval, flags.gfd.output_file) == (90.0, "")


def test_one_list_strategy_may_be_a_word() -> None:
    """A single strategy needs no list."""
    config = config_of("flags: {plugin: {deviceListStrategy: volume-mounts}}")

    assert config.flags.plugin.device_list_strategy == (ListStrategy.VOLUME_MOUNTS,)


def test_extension() -> None:
    """The block that NVIDIA's plugin ignores; its policy goes before that of the flags."""
    config = config_of(
        "flags: {plugin: {sharedDevicesAllocationPolicy: packed}}\n"
        "gpushare: {onShrink: refuse, allocation: distinct, slots: 4, memoryUnit: 256MiB, placement: spread}\n"
    )

    assert config.extension.on_shrink is OnShrink.REFUSE
    assert config.allocation is Allocation.DISTINCT


@pytest.mark.parametrize(
    ("written", "mode"),
    [
        pytest.param("fractions: none", None, id="none"),
        pytest.param("fractions: hami", FractionMode(dialect=Dialect.HAMI), id="defaults"),
        pytest.param(
            "fractions: hami, slots: 4, isolation: hami-core, memoryScaling: 1.5, coreScaling: 2",
            FractionMode(
                dialect=Dialect.HAMI, slots=4, isolation=Isolation.HAMI_CORE, memory_scaling=1.5, core_scaling=2
            ),
            id="hami",
        ),
        pytest.param(
            "fractions: aliyun, memoryUnit: 256MiB, placement: spread, compute: false",
            FractionMode(dialect=Dialect.ALIYUN, unit_mib=256, placement=Placement.SPREAD, compute=False),
            id="aliyun",
        ),
        pytest.param(
            "fractions: hami, isolation: exclusive",
            FractionMode(dialect=Dialect.HAMI, isolation=Isolation.EXCLUSIVE, slots=1),
            id="exclusive has one slot",
        ),
    ],
)
def test_fractions(written: str, mode: FractionMode | None) -> None:
    """How a node serves fractions."""
    assert config_of(f"gpushare: {{{written}}}").extension.fractions == mode


@pytest.mark.parametrize("written", [pytest.param("{}", id="empty"), pytest.param("{channelIDs: null}", id="null")])
def test_imex_unset(written: str) -> None:
    """No channels."""
    assert config_of(f"imex: {written}").imex.channel_ids == ()


def test_imex() -> None:
    """Channel 0, required."""
    config = config_of("imex: {channelIDs: [0], required: true}")

    assert (config.imex.channel_ids, config.imex.required) == ((0,), True)


def test_infinite_sleep() -> None:
    """Label once."""
    assert config_of("flags: {gfd: {sleepInterval: infinite}}").flags.gfd.sleep_interval == math.inf


def test_anchors_and_merges() -> None:
    """YAML's own means of not repeating oneself work."""
    text = "sharing:\n  timeSlicing:\n    resources:\n    - &a {name: gpu, replicas: 2}\n    - {<<: *a, name: mig-1g.5gb}\n"

    assert [entry.name for entry in config_of(text).resources] == ["nvidia.com/gpu", "nvidia.com/mig-1g.5gb"]


@pytest.mark.parametrize(
    ("text", "path", "words"),
    [
        pytest.param("version: v1\n---\nversion: v2\n", "", "only the first YAML document", id="second document"),
        pytest.param("version: v1\n---\n{[", "", "only the first YAML document", id="unreadable second document"),
        pytest.param("resources: {gpus: [{pattern: '*', name: gpu}]}", "resources.gpus", "ignored", id="patterns"),
        pytest.param("resources: {mig: [{pattern: '*', name: x}]}", "resources.mig", "ignored", id="MIG patterns"),
        pytest.param("flags: {gfd: {sleepInterval: 60}}", "flags.gfd.sleepInterval", "nanoseconds", id="nanoseconds"),
        pytest.param("gpushare: {slots: 4}", "gpushare.slots", "without fractions", id="fractions, but none"),
        pytest.param("gpushare: {fractions: aliyun, slots: 4}", "gpushare.slots", "with", id="slots of units"),
        pytest.param(
            "gpushare: {fractions: hami, memoryUnit: MiB}",
            "gpushare.memoryUnit",
            'no effect with "fractions: hami"',
            id="units of slots",
        ),
        pytest.param(
            "gpushare: {fractions: hami, allocation: packed}",
            "gpushare.allocation",
            "no effect",
            id="shares beside fractions",
        ),
        pytest.param(
            shared("{name: gpu, replicas: 1, rename: x}"),
            "sharing.timeSlicing.resources[0].rename",
            "no effect",
            id="rename without shares",
        ),
    ],
)
def test_warnings(text: str, path: str, words: str) -> None:
    """What is accepted, though it does not do what its writer may think."""
    parsed = parse_sharing(text)

    assert parsed.config is not None
    assert [warning.path for warning in parsed.warnings] == [path]
    assert words in parsed.warnings[0].message


def test_an_empty_second_document_is_nothing() -> None:
    """A text that ends with `---` is no surprise."""
    assert parse_sharing("version: v1\n---\n").warnings == ()


JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                ("sharing", "timeSlicing", "mps", "resources", "name", "replicas", "devices", "flags", "x")
            ),
            inner,
            max_size=4,
        )
    ),
    max_leaves=12,
)


@settings(max_examples=150, deadline=None)
@given(JSON_VALUES)
def test_any_data_gives_a_verdict(value: object) -> None:
    """Whatever stands in the text, there is a configuration or there are problems, never both, never an exception."""
    parsed = parse_sharing(yaml.safe_dump(value, allow_unicode=True))

    assert (parsed.config is None) == bool(parsed.problems)


@settings(max_examples=150, deadline=None)
@given(st.text(max_size=60) | st.text("{}[]:,-&*<>!|'\"\\#%@ \n\tab01", max_size=60))
def test_any_text_gives_a_verdict(text: str) -> None:
    """The same for texts that are no YAML at all."""
    parsed = parse_sharing(text)

    assert (parsed.config is None) == bool(parsed.problems)
