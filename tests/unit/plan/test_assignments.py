"""Which configuration a node gets, and what is said where it cannot get it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from gpushare import names
from gpushare.domain import manifests
from gpushare.domain.gpunode import CONFIG_ASSIGNED, ConfigReason
from gpushare.domain.manifests import ObjectKey
from gpushare.plan import catalogs
from gpushare.plan.build import build_plan
from gpushare.plan.snapshot import ConfigMap, Policy, Snapshot
from gpushare.plan.status import CONFIG_VALID
from support.snapshots import (
    LATER,
    MAP,
    NAMESPACE,
    condition_of,
    config_map,
    node,
    policy,
    settle,
    sharing_policy,
    snapshot,
    time_slicing,
)  # fmt: skip

DEFAULT = "devicePlugin.config.default of the policy"
FOUR, EIGHT = time_slicing(4), time_slicing(8)
MAPS = (config_map(any=FOUR, other=EIGHT, typo=FOUR.replace("replicas", "replica"), empty="# nothing\n"),)


def _get(found: Snapshot, name: str = "gpu01") -> tuple[ConfigReason, str, str]:
    [config] = [gpu_node.config for gpu_node in found.gpu_nodes if gpu_node.name == name]
    assert config is not None
    return config.reason, config.name, config.content


@pytest.mark.parametrize(
    ("active", "label", "expected"),
    [
        pytest.param(policy(), "", (ConfigReason.NONE, "none", ""), id="no ConfigMap named"),
        pytest.param(policy(), "any", (ConfigReason.NONE, "none", ""), id="a label means nothing without a ConfigMap"),
        pytest.param(sharing_policy(), "", (ConfigReason.NONE, "none", ""), id="neither label nor default"),
        pytest.param(sharing_policy("any"), "", (ConfigReason.DEFAULT, "any", FOUR), id="default"),
        pytest.param(sharing_policy(), "other", (ConfigReason.LABEL, "other", EIGHT), id="label"),
        pytest.param(sharing_policy("any"), "other", (ConfigReason.LABEL, "other", EIGHT), id="label before default"),
        pytest.param(sharing_policy("any"), "typo", (ConfigReason.NONE, "none", ""), id="an invalid one starts unshared"),
        pytest.param(
            policy(devicePlugin={"config": {"default": "any"}}), "", (ConfigReason.NONE, "none", ""),
            id="a default means nothing without a ConfigMap",
        ),
    ],
)  # fmt: skip
def test_choice(active: Policy, label: str, expected: tuple[ConfigReason, str, str]) -> None:
    """Label before default before nothing."""
    labels = {"config": label} if label else {}

    found, _ = settle(snapshot(node(**labels), policies=(active,), config_maps=MAPS))

    assert expected == _get(found)


def test_label_that_chooses_among_nothing() -> None:
    """A label without a ConfigMap to choose from changes nothing, and that is said on the policy, the node and its GPUNode."""
    found, plan = settle(snapshot(node(config="any"), policies=(policy(),), config_maps=MAPS))

    said = 'the label nvidia.com/device-plugin.config names "any", which means nothing while devicePlugin.config.name'
    assert said in condition_of(found, CONFIG_VALID).message
    assert said in found.gpu_nodes[0].status.conditions[0].message
    assert any(said in note.message for note in plan.standing.values() if note.regarding.kind == manifests.NODE)
    assert found.policies[0].state == "ready"


@pytest.mark.parametrize(("enabled", "warned"), [(True, True), (False, False)], ids=["counts", "counts for nothing"])
def test_workload_that_there_is_not(*, enabled: bool, warned: bool) -> None:
    """The default holds, and who wrote the label is told, where such labels count."""
    labels = {names.LABEL_WORKLOAD_CONFIG: "vm"}

    found, _ = settle(snapshot(node(**labels), policies=(sharing_policy("any", sandboxWorkloads={"enabled": enabled}),),
                               config_maps=MAPS))  # fmt: skip

    said = 'the label nvidia.com/gpu.workload.config says "vm", which counts for nothing; write one of container, vm-'
    assert (said in condition_of(found, CONFIG_VALID).message) is warned
    assert _get(found) == (ConfigReason.DEFAULT, "any", FOUR)


@pytest.mark.parametrize(
    ("change", "texts"),
    [
        pytest.param(
            {"policies": (sharing_policy("anny"),)},
            [
                'gpu01 keeps "any" (revision', f'{DEFAULT} names "anny", which ConfigMap gpu-operator/time-slicing',
                "does not have (it has any, empty, other, typo)",
            ],
            id="default names no key",
        ),
        pytest.param(
            {"nodes": (node(config="tesla-t5"),)},
            ['gpu01 keeps "any" (revision', 'the label nvidia.com/device-plugin.config names "tesla-t5", which ConfigMap'],
            id="label names no key",
        ),
        pytest.param(
            {"policies": (sharing_policy("typo"),)},
            [
                f'{DEFAULT} names "typo" of ConfigMap gpu-operator/time-slicing, which is not valid: sharing.',
                "sharing.timeSlicing.resources[0].replica (line 6): ",
                '"replicas"',
            ],
            id="invalid content",
        ),
        pytest.param(
            {"policies": (sharing_policy("empty"),)}, ["it is empty", "version: v1"], id="empty content",
        ),
        pytest.param(
            {"config_maps": ()}, ["ConfigMap gpu-operator/time-slicing does not exist"], id="ConfigMap deleted",
        ),
        pytest.param(
            {"config_maps": (), "config_maps_elsewhere": (ObjectKey(manifests.CONFIG_MAP, MAP, "default"),)},
            ["ConfigMap time-slicing is in namespace default, but must be in gpu-operator"],
            id="ConfigMap in another namespace",
        ),
        pytest.param(
            {"config_maps": (), "policies": (sharing_policy(),)},
            ["does not exist"],
            id="ConfigMap missing though nothing names a key",
        ),
        pytest.param(
            {"config_maps": (ConfigMap(name=MAP, binary=frozenset({"any"})),)}, ["binary data"], id="no text",
        ),
        pytest.param(
            {"config_maps": (config_map(),)}, ["(it has no keys)"], id="no keys at all",
        ),
        pytest.param(
            {"config_maps": (config_map(any="sharing: [\n"),)}, ["which is not valid: line "], id="unreadable by an edit",
        ),
    ],
)  # fmt: skip
def test_what_cannot_be_used_disturbs_nothing(change: dict[str, object], texts: list[str]) -> None:
    """The node keeps what it has, byte for byte; the policy, the GPUNode and Events say why; the correction takes effect."""
    good, plan = settle(snapshot(node(), policies=(sharing_policy("any"),), config_maps=MAPS))

    bad = build_plan(replace(good, **change), LATER, plan.standing)

    assert bad.gpu_nodes == ()
    [written] = bad.gpu_node_conditions
    assigned = next(condition for condition in written.conditions if condition.type == CONFIG_ASSIGNED)
    assert assigned.status == "False"
    [status] = bad.policies
    assert status.state == "notReady"
    valid = next(condition for condition in status.conditions if condition.type == CONFIG_VALID)
    assert valid.status == "False"
    told = [event.message for event in bad.events]
    assert {str(event.regarding) for event in bad.events} == {
        "ClusterPolicy cluster-policy", f"ConfigMap {NAMESPACE}/{MAP}", "Node gpu01",
    }  # fmt: skip
    for text in texts:
        assert text in valid.message
        assert text in assigned.message
        assert all(text in message for message in told)

    corrected, last = settle(replace(good, **{key: getattr(good, key) for key in change}), before=bad.standing)
    assert corrected.gpu_nodes == good.gpu_nodes
    assert last.policies == ()


def test_kept_configuration_is_not_touched_by_the_policy() -> None:
    """While a configuration cannot be used, a changed MIG strategy of the policy waits too."""
    good, _ = settle(snapshot(node(), policies=(sharing_policy("any", mig={"strategy": "single"}),), config_maps=MAPS))

    bad = build_plan(replace(good, policies=(sharing_policy("typo", mig={"strategy": "mixed"}),)), LATER)

    assert bad.gpu_nodes == ()


def test_edit_is_one_write() -> None:
    """An edited ConfigMap changes the spec of a GPUNode and nothing else of it."""
    good, plan = settle(snapshot(node(), policies=(sharing_policy("any"),), config_maps=MAPS))

    edited = build_plan(replace(good, config_maps=(config_map(any=EIGHT),)), LATER, plan.standing)

    assert [spec.config.content for spec in edited.gpu_nodes] == [EIGHT]
    assert (edited.gpu_node_conditions, edited.node_labels) == ((), ())


def test_several_problems() -> None:
    """Different mistakes on different nodes are all told, each with its node."""
    nodes = (node("gpu01", config="tesla-t5"), node("gpu02", config="typo"), node("gpu03", config="other"))

    found, _ = settle(snapshot(*nodes, policies=(sharing_policy(),), config_maps=MAPS))

    condition = condition_of(found, CONFIG_VALID)
    assert condition.reason == "SeveralProblems"
    label = "the label nvidia.com/device-plugin.config"
    assert f'gpu01 stays unshared: {label} names "tesla-t5", which ConfigMap' in condition.message
    assert f'gpu02 stays unshared: {label} names "typo" of ConfigMap gpu-operator/{MAP}, which' in condition.message
    assert "gpu03" not in condition.message


def test_many_nodes_one_sentence() -> None:
    """A problem that hundreds of nodes share is told once, with a few of them by name."""
    fleet = [node(f"gpu{number:03}", config="tesla-t5") for number in range(500)]

    found, _ = settle(snapshot(*fleet, policies=(sharing_policy(),), config_maps=MAPS))

    message = condition_of(found, CONFIG_VALID).message
    assert message.endswith("gpu000, gpu001, gpu002 and 497 more keep what they have")
    assert len(message) < 400


@pytest.mark.parametrize(
    ("ruling", "own", "warned"),
    [
        pytest.param("single", "mixed", True, id="they differ"),
        pytest.param("mixed", "mixed", False, id="they agree"),
        pytest.param("", "mixed", False, id="the policy has none"),
        pytest.param("single", "", False, id="the configuration has none"),
    ],
)
def test_shadowed_mig_strategy(ruling: str, own: str, warned: bool) -> None:
    """The policy's MIG strategy beats that of the configuration, and says so where they differ."""
    maps = (config_map(any=time_slicing(4, mig_strategy=own)),)
    mig = {"strategy": ruling} if ruling else {}

    found, _ = settle(snapshot(node(), policies=(sharing_policy("any", mig=mig),), config_maps=maps))

    assert found.gpu_nodes[0].config.mig_strategy == ruling
    condition = condition_of(found, CONFIG_VALID)
    assert (condition.reason == "ValidWithWarnings") is warned
    assert ('"mixed" has no effect, since the policy says mig.strategy "single"' in condition.message) is warned


def test_warning_names_its_place() -> None:
    """What is odd about a valid text is told with the key and the ConfigMap to open."""
    maps = (config_map(twodocs=FOUR + "---\nversion: v1\n"),)

    found, _ = settle(snapshot(node(), policies=(sharing_policy("twodocs"),), config_maps=maps))

    place = f'"twodocs" of ConfigMap gpu-operator/{MAP}: line 8: '
    assert place in condition_of(found, CONFIG_VALID).message
    assert place in found.gpu_nodes[0].status.conditions[0].message


def test_unused_key_that_is_broken() -> None:
    """A broken key that nothing names yet is a warning, before somebody puts a label on."""
    found, _ = settle(snapshot(node(), policies=(sharing_policy("any"),), config_maps=MAPS))

    condition = condition_of(found, CONFIG_VALID)
    assert condition.status == "True"
    assert 'no node can use "typo"' in condition.message
    assert found.policies[0].state == "ready"


@pytest.mark.parametrize(
    ("active", "said"),
    [
        pytest.param(policy(), ("NotShared", "names no ConfigMap: nothing is shared"), id="no ConfigMap"),
        pytest.param(
            sharing_policy(), ("Valid", f"ConfigMap {NAMESPACE}/{MAP}: no node uses a key of it"), id="no key"
        ),
        pytest.param(sharing_policy("any"), ("Valid", f"ConfigMap {NAMESPACE}/{MAP}: any (revision "), id="a key"),
    ],
)
def test_what_is_in_use(active: Policy, said: tuple[str, str]) -> None:
    """Where all is well, the condition says from where, and what nodes run."""
    found, _ = settle(snapshot(node(), policies=(active,), config_maps=(config_map(any=FOUR),)))

    condition = condition_of(found, CONFIG_VALID)
    assert (condition.status, condition.reason) == ("True", said[0])
    assert said[1] in condition.message


def test_texts_are_read_once() -> None:
    """Also where each node has a key of its own, a pass reads what has changed, and nothing else."""
    texts = {f"k{number}": time_slicing(2 + number) for number in range(300)}
    found = snapshot(node(), policies=(sharing_policy(),), config_maps=(config_map(**texts),))
    build_plan(found, LATER)
    before = catalogs._parse.cache_info().misses

    build_plan(found, LATER)

    assert catalogs._parse.cache_info().misses == before
