"""What the labels of other GPU sharing systems make of a node, and which nodes get the taint."""

from __future__ import annotations

from dataclasses import replace

import pytest

from gpushare import names
from gpushare.api.parsing import parse_sharing
from gpushare.domain.fractions import Dialect, FractionMode, Isolation, Placement
from gpushare.domain.gpunode import Config, ConfigReason, GPUNodeStatus
from gpushare.plan import schedules
from gpushare.plan.build import build_plan
from gpushare.plan.snapshot import Node, Snapshot
from gpushare.plan.taints import NodeTaint
from support.snapshots import (
    NOW,
    SETTINGS,
    carry_out,
    condition_of,
    config_map,
    node,
    policy,
    settle,
    sharing_policy,
    snapshot,
    time_slicing,
)

SCHEDULE, PLACEMENT = names.LABEL_ACK_SCHEDULE, names.LABEL_ACK_PLACEMENT
HAMI = "gpushare: {fractions: hami}\n"


def labelled(**labels: str) -> Node:
    """Keys without their dots and slashes."""
    keys = {"schedule": SCHEDULE, "placement": PLACEMENT, "disable": names.LABEL_DISABLE_ISOLATION, "gpu": "gpu"}
    plain = node()
    return replace(plain, labels={**plain.labels, **{keys[key]: value for key, value in labels.items()}})


def mode(**fields: object) -> FractionMode:
    return replace(FractionMode(dialect=Dialect.ALIYUN), **fields)


@pytest.mark.parametrize(
    ("labels", "expected"),
    [
        pytest.param({"schedule": "default"}, None, id="whole GPUs"),
        pytest.param({"schedule": "topology"}, None, id="whole GPUs near each other"),
        pytest.param({"schedule": "share"}, mode(compute=False), id="counted only"),
        pytest.param({"schedule": "cgpu"}, mode(isolation=Isolation.HAMI_CORE, compute=False), id="isolated memory"),
        pytest.param({"schedule": "core_mem"}, mode(isolation=Isolation.HAMI_CORE), id="memory and compute"),
        pytest.param({"schedule": "core_mem", "disable": "true"}, mode(), id="isolation disabled"),
        pytest.param({"schedule": "mps"}, mode(isolation=Isolation.MPS), id="MPS"),
        pytest.param({"schedule": "mig"}, mode(isolation=Isolation.MIG), id="MIG instances"),
        pytest.param(
            {"schedule": "share", "placement": "spread"},
            mode(placement=Placement.SPREAD, compute=False),
            id="spread",
        ),
        pytest.param(
            {"gpu": "on"}, FractionMode(dialect=Dialect.HAMI, isolation=Isolation.HAMI_CORE), id="a node of HAMi"
        ),
        pytest.param({"schedule": "share", "gpu": "on"}, mode(compute=False), id="both, of which one counts"),
    ],
)
def test_labels(labels: dict[str, str], expected: FractionMode | None) -> None:
    """Each mode is a text that anybody could have written."""
    settings = replace(SETTINGS, hami_nodes=True, isolation="hami-core")

    entry = schedules.find_entry(labelled(**labels), settings, "")

    assert entry is not None
    parsed = parse_sharing(entry.config.content)
    assert parsed.config is not None
    assert (parsed.config.extension.fractions, parsed.warnings, entry.refusal) == (expected, (), None)


def test_nodes_of_hami_as_the_chart_says() -> None:
    """Slots and over-commitment by an administrator's word, and an isolation before that of all other labels."""
    keys = {"slots": 20, "memoryScaling": 1.5, "isolation": "mps"}
    settings = replace(SETTINGS, hami_nodes=True, isolation="hami-core", hami_keys=keys)
    entry = schedules.find_entry(labelled(gpu="on"), settings, "")

    assert entry is not None
    parsed = parse_sharing(entry.config.content)
    assert parsed.config is not None
    assert parsed.config.extension.fractions == FractionMode(
        dialect=Dialect.HAMI, slots=20, memory_scaling=1.5, isolation=Isolation.MPS
    )


@pytest.mark.parametrize(
    "labels",
    [
        pytest.param({}, id="none"),
        pytest.param({"gpu": "on"}, id="HAMi's, which nobody enabled"),
        pytest.param({"placement": "spread"}, id="a placement alone"),
        pytest.param({"schedule": ""}, id="an empty one"),
    ],
)
def test_labels_that_ask_for_nothing(labels: dict[str, str]) -> None:
    """Then the policy's default counts."""
    assert schedules.find_entry(labelled(**labels), SETTINGS, "") is None


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        pytest.param(
            {"schedule": "cpgu"},
            'the label ack.node.gpu.schedule says "cpgu", which is not known; '
            "write one of default, cgpu, core_mem, share, mps, topology, mig",
            id="mode",
        ),
        pytest.param(
            {"schedule": "cgpu", "placement": "pack"},
            'the label ack.node.gpu.placement says "pack", which is not known; write one of binpack, spread',
            id="placement",
        ),
    ],
)
def test_unknown_words(labels: dict[str, str], message: str) -> None:
    """The node keeps what it has, and says why."""
    before, _ = settle(snapshot(labelled(schedule="share")))
    after, _ = settle(replace(before, nodes=(replace(before.nodes[0], labels=labelled(**labels).labels),)))

    [gpu_node], [kept] = after.gpu_nodes, before.gpu_nodes
    assert gpu_node.config == kept.config
    assigned = next(item for item in gpu_node.status.conditions if item.type == "ConfigAssigned")
    assert (assigned.status, assigned.reason) == ("False", "UnknownMode")
    assert assigned.message.startswith('gpu01 keeps "ack.node.gpu.schedule=share" (revision ')
    assert assigned.message.endswith(message)
    assert message in condition_of(after, "ConfigValid").message


def test_order() -> None:
    """The label that names a configuration, then those of others, then the policy's default."""
    both = {SCHEDULE: "share"}
    config_maps = (config_map(a=time_slicing(2), b=time_slicing(3)),)
    found, _ = settle(
        snapshot(
            node("n1", config="a", **both),
            node("n2", **both),
            node("n3"),
            policies=(sharing_policy("b"),),
            config_maps=config_maps,
        )
    )

    configs = {item.name: item.config for item in found.gpu_nodes if item.config is not None}
    assert {name: (config.reason, config.name) for name, config in configs.items()} == {
        "n1": (ConfigReason.LABEL, "a"),
        "n2": (ConfigReason.ACK, "ack.node.gpu.schedule=share"),
        "n3": (ConfigReason.DEFAULT, "b"),
    }


def test_labels_work_without_a_config_map() -> None:
    """What a label says by itself needs no ConfigMap, even where the one that the policy names is missing."""
    found, _ = settle(snapshot(labelled(schedule="share"), policies=(sharing_policy("b"),)))

    [gpu_node] = found.gpu_nodes
    assert gpu_node.config is not None
    assert gpu_node.config.reason is ConfigReason.ACK


@pytest.mark.parametrize(("mode", "told"), [("cgpu", True), ("core_mem", True), ("share", False)])
def test_isolation_that_nobody_provides(mode: str, *, told: bool) -> None:
    """Whoever asks for it is told that memory is only counted, on the node and on the policy."""
    found, _ = settle(snapshot(labelled(schedule=mode)))

    assert ("nothing isolates it here" in condition_of(found, "ConfigValid").message) is told


def test_json_and_back() -> None:
    """A configuration that a label stands for comes back from the API as it went."""
    config = Config(reason=ConfigReason.ACK, title="ack.node.gpu.schedule=cgpu", content="version: v1\n")

    assert Config.from_json(config.to_json()) == config
    assert Config.from_json(Config().to_json()) == Config()


def in_hami_mode(*, tainted: bool = False) -> Snapshot:
    item = replace(node(config="h"), tainted=tainted)
    return snapshot(item, policies=(sharing_policy(),), config_maps=(config_map(h=HAMI, t=time_slicing(2)),))


def test_taint_comes_with_the_configuration() -> None:
    """In the same pass, and once."""
    taint = NodeTaint(name="gpu01", uid="uid-gpu01", present=True)

    assert build_plan(in_hami_mode(), NOW).node_taints == (taint,)
    assert settle(in_hami_mode(tainted=True))[1].node_taints == ()


def test_taint_stays_until_the_agent_has_left_the_mode() -> None:
    """Its slots are still there until then."""
    settled, _ = settle(in_hami_mode(tainted=True))
    other = {**settled.nodes[0].labels, names.LABEL_CONFIG: "t"}
    [gpu_node] = settled.gpu_nodes
    serving = replace(gpu_node, status=replace(gpu_node.status, fractions=FractionMode(dialect=Dialect.HAMI)))
    changed = replace(settled, nodes=(replace(settled.nodes[0], labels=other),), gpu_nodes=(serving,))

    plan = build_plan(changed, NOW)
    after = carry_out(changed, plan)
    left = replace(after, gpu_nodes=(replace(after.gpu_nodes[0], status=GPUNodeStatus()),))

    gone = (NodeTaint(name="gpu01", uid="uid-gpu01", present=False),)
    assert plan.node_taints == ()
    assert build_plan(left, NOW).node_taints == gone


@pytest.mark.parametrize(
    "change",
    [
        pytest.param({"policies": ()}, id="no policy"),
        pytest.param({"policies": (policy(devicePlugin={"enabled": False}),)}, id="no agents"),
    ],
)
def test_taint_goes(change: dict[str, object]) -> None:
    """With the policy, and where nobody wants agents any more."""
    settled, _ = settle(in_hami_mode(tainted=True))

    assert build_plan(replace(settled, **change), NOW).node_taints == (
        NodeTaint(name="gpu01", uid="uid-gpu01", present=False),
    )


@pytest.mark.parametrize("text", [HAMI.replace("hami", "aliyun"), HAMI.replace("hami", "hami, isolation: mig")])
def test_no_taint_where_pods_cannot_be_mistaken(text: str) -> None:
    """Units of memory and MIG instances have resources of their own."""
    found, plan = settle(snapshot(node(config="h"), policies=(sharing_policy(),), config_maps=(config_map(h=text),)))

    assert (plan.node_taints, found.nodes[0].tainted) == ((), False)
