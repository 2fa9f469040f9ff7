"""What a change would make of nodes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from gpushare import names
from gpushare.domain.devices import Inventory
from gpushare.domain.gpunode import ContainerAllocation, GPUNodeStatus, ResourceStatus
from gpushare.plan.build import build_plan
from gpushare.plan.outlook import Hardware
from gpushare.plan.preview import NodePreview, Overuse, Preview, build_preview
from gpushare.plan.snapshot import Snapshot
from support.inventories import gpu, split_gpu, t4s
from support.inventories import node as inventory_of
from support.snapshots import CONFIG, NOW, carry_out, config_map, node, policy, sharing_policy, snapshot, time_slicing

GPU = names.RESOURCE_GPU
REPLICAS = f"{names.PREFIX}gpu.replicas"
USER = ContainerAllocation(gpu_index=0, namespace="n", pod="p", container="c", resource=GPU, shares=(1,))
RENAMED = time_slicing(2).replace("replicas: 2", "replicas: 2\n      devices: [9]\n      rename: nvidia.com/few")


def sliced(replicas: int = 4, **keys: str) -> Snapshot:
    """One node of a policy whose default cuts each GPU into so many."""
    return snapshot(
        node("gpu01"), policies=(sharing_policy("all"),), config_maps=(config_map(all=time_slicing(replicas), **keys),)
    )


def in_force(replicas: int = 4, *, inventory: Inventory | None = None, in_use: int = 0) -> tuple[Snapshot, Hardware]:
    """The same after controller and agent have done all, with so many shares in use by one pod."""
    inventory = inventory or t4s(2)
    start = sliced(replicas)
    first = build_preview(start, start, {"gpu01": Hardware(inventory=inventory)}, NOW).nodes[0]
    told = {key: after for key, (_, after) in first.labels.items() if after is not None and _is_told(key)}
    done = start
    for _ in range(2):
        done = carry_out(done, build_plan(done, NOW), labels=told)
    (gpu_node,) = done.gpu_nodes
    resources = tuple(
        ResourceStatus(
            name=name, strategy="time-slicing", replicas=replicas, total=total, healthy=total, allocated=in_use
        )
        for name, total in first.resources_after.items()
    )
    status = replace(gpu_node.status, resources=resources, allocations=(USER,) if in_use else ())
    return done, Hardware(inventory=inventory, status=status)


def _is_told(key: str) -> bool:
    return not key.startswith((names.LABEL_DEPLOY_PREFIX, names.LABEL_PRESENT))


def preview_of(before: Snapshot, hardware: Hardware, **changes: Any) -> tuple[Preview, NodePreview]:
    """The preview, and its only node."""
    preview = build_preview(before, replace(before, **changes), {"gpu01": hardware}, NOW)
    return preview, preview.nodes[0]


def changed(shown: NodePreview) -> Mapping[str, tuple[str | None, str | None]]:
    """Its labels, without how often each product was named."""
    return {key.removeprefix(names.PREFIX): both for key, both in shown.labels.items()}


def test_nothing_changes() -> None:
    """A cluster that is as it should be has nothing to be told."""
    before, hardware = in_force()
    preview, shown = preview_of(before, hardware)

    assert not preview.refused
    assert (shown.before, shown.resources_before, shown.labels) == (shown.after, shown.resources_after, {})
    assert shown.resources_after == {GPU: 8}


def test_new_node() -> None:
    """Where nothing of ours is yet, labels and resources are all new."""
    _, shown = preview_of(sliced(), Hardware(inventory=t4s(2)))

    assert (shown.before, shown.resources_before, shown.resources_after) == (None, {}, {GPU: 8})
    assert shown.labels[REPLICAS] == (None, "4")
    assert shown.labels[names.LABEL_PRESENT] == (None, "true")


def test_more_shares() -> None:
    """Exactly the labels that tell of them change."""
    before, hardware = in_force()
    _, shown = preview_of(before, hardware, config_maps=sliced(10).config_maps)

    assert shown.resources_after == {GPU: 20}
    assert changed(shown) == {"gpu.replicas": ("4", "10")}
    assert shown.before is not None
    assert shown.after is not None
    assert shown.before.revision != shown.after.revision


def test_fewer_shares_than_are_in_use() -> None:
    """Who uses more than there would be is named."""
    before, hardware = in_force(in_use=7)
    _, shown = preview_of(before, hardware, config_maps=sliced(2).config_maps)

    assert shown.overuse == (Overuse(resource=GPU, in_use=7, total=4, pods=("n/p",)),)


def test_broken_key() -> None:
    """The node keeps what it has, and says why."""
    before, hardware = in_force()
    preview, shown = preview_of(before, hardware, config_maps=(config_map(all="shared: 1"),))

    assert preview.refused
    assert (shown.resources_after, shown.labels) == ({GPU: 8}, {})
    assert shown.refusals[0].startswith('gpu01 keeps "all" (revision ')


def test_does_not_fit() -> None:
    """What only the hardware refuses is refused as the agent would."""
    before, hardware = in_force()
    preview, shown = preview_of(before, hardware, config_maps=(config_map(all=RENAMED),))

    assert preview.refused
    assert (shown.resources_after, shown.labels) == ({GPU: 8}, {})
    assert "devices[0]" in shown.refusals[0]


def test_mps() -> None:
    """A node that goes to MPS, whose directory is nothing that the text has to name."""
    before, hardware = in_force(4)
    mps = config_map(all=time_slicing(8).replace("timeSlicing", "mps"))

    _, found = preview_of(before, hardware, config_maps=(mps,))

    assert (found.refusals, found.resources_after) == ((), {GPU: 16})


def test_mig_strategy() -> None:
    """Another MIG strategy makes other resources, and those there were are shown as 0."""
    before, hardware = in_force(1, inventory=inventory_of(split_gpu(0, "1g.5gb", "2g.10gb"), gpu(1)))
    _, shown = preview_of(before, hardware, policies=(sharing_policy("all", mig={"strategy": "mixed"}),))

    assert shown.resources_before == {GPU: 2}
    assert shown.resources_after == {GPU: 1, f"{names.PREFIX}mig-1g.5gb": 1, f"{names.PREFIX}mig-2g.10gb": 1}
    assert shown.labels[f"{names.PREFIX}mig.strategy"] == (None, "mixed")
    assert shown.warnings == (
        "its agent will also set labels about multiprocessors, slices and engines, which only it knows",
    )


def test_label_of_a_person() -> None:
    """A label that is laid over shows as a change, with what follows from it."""
    before, hardware = in_force()
    both = (config_map(all=time_slicing(4), few=time_slicing(2)),)
    nodes = tuple(replace(each, labels={**each.labels, CONFIG: "few"}) for each in before.nodes)
    _, shown = preview_of(before, hardware, config_maps=both, nodes=nodes)

    assert changed(shown) == {"device-plugin.config": (None, "few"), "gpu.replicas": ("4", "2")}


@pytest.mark.parametrize(
    ("changes", "resources", "refused"),
    [
        pytest.param({"policies": ()}, {GPU: 0}, False, id="no policy"),
        pytest.param({"policies": (policy(devicePlugin={"enabled": False}),)}, {GPU: 0}, False, id="switched off"),
        pytest.param({"policies": (replace(policy(), spec=None),)}, {GPU: 8}, True, id="policy without a spec"),
        pytest.param({"gpu_clusters": ("other",)}, {GPU: 8}, True, id="another operator"),
        pytest.param({"config_maps": ()}, {GPU: 8}, True, id="no ConfigMap"),
    ],
)
def test_whole_policies(changes: dict[str, Any], resources: dict[str, int], refused: bool) -> None:
    """What becomes of every node when the policy goes, or cannot be acted upon."""
    before, hardware = in_force()
    preview, shown = preview_of(before, hardware, **changes)

    assert (shown.resources_after, preview.refused) == (resources, refused)
    if refused:
        assert (shown.after, shown.labels) == (shown.before, {})


def test_agent_opted_out() -> None:
    """A node whose agent is kept off offers nothing."""
    before, hardware = in_force()
    key = f"{names.LABEL_DEPLOY_PREFIX}device-plugin"
    nodes = tuple(
        replace(each, labels={**each.labels, key: "false"}, owned=each.owned - {key}) for each in before.nodes
    )
    _, shown = preview_of(before, hardware, nodes=nodes)

    assert shown.resources_after == {GPU: 0}
    assert shown.labels[key] == ("true", "false")


def test_second_policy() -> None:
    """The younger one is ignored, and that is said."""
    before, hardware = in_force()
    younger = policy("second", created="2026-02-01T00:00:00Z")
    preview, shown = preview_of(before, hardware, policies=(*before.policies, younger))

    assert (preview.policy, preview.refused, shown.labels) == ("cluster-policy", False, {})
    assert (
        'ClusterPolicy "second" decides nothing: ClusterPolicy "cluster-policy" is the active one'
        in preview.warnings[0]
    )


def test_controller_that_is_told_of_another_policy() -> None:
    """Where the one that it was told to follow is not there, nothing is changed, and that is said."""
    before, hardware = in_force()
    preview, shown = preview_of(before, hardware, settings=replace(before.settings, policy="misspelt"))

    assert (preview.policy, preview.refused, shown.resources_after, shown.labels) == ("", True, {GPU: 8}, {})
    assert 'there is no ClusterPolicy "misspelt"' in preview.refusals[0]


def test_gpus_not_known() -> None:
    """Before an agent has told of them, counts cannot be had."""
    _, shown = preview_of(sliced(), Hardware(status=GPUNodeStatus()))

    assert (shown.resources_after, shown.warnings) == ({}, ("its GPUs are not known before its agent has run",))
