"""Labels that we write on nodes, and those that we leave alone."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from gpushare import names
from gpushare.api.clusterpolicy import ClusterPolicy, parse_policy
from gpushare.domain.gpunode import GPUNode, GPUNodeStatus
from gpushare.plan import discovery, nodes
from gpushare.plan.nodes import Wanted
from gpushare.plan.snapshot import Node
from support.snapshots import CONFIG, NOW, PCI, PRESENT, SETTINGS, node, policy, settle, snapshot

DEPLOY = names.LABEL_DEPLOY_PREFIX
ALL = {f"{DEPLOY}{component}": "true" for component in nodes.DEPLOYED}
PLUGIN = names.LABEL_DEPLOY_DEVICE_PLUGIN
MIG_MANAGER = f"{DEPLOY}mig-manager"
FACTS = {f"{names.RESOURCE_GPU}.count": "4", names.LABEL_PRODUCT: "Tesla-T4", names.LABEL_MIG_CAPABLE: "false"}


def parsed(**spec: Any) -> ClusterPolicy:
    result = parse_policy({"spec": {"devicePlugin": {}, **spec}}).policy
    assert result is not None
    return result


def reported(labels: dict[str, str], *, uid: str = "uid-gpu01") -> GPUNode:
    return GPUNode(name="gpu01", node_uid=uid, status=GPUNodeStatus(labels=labels))


def wanted_labels(found: Node, parsed_policy: ClusterPolicy, gpu_node: GPUNode | None) -> Mapping[str, str]:
    sight = discovery.look(found, gpu_node, NOW, grace_seconds=0)
    return nodes.build_wanted(found, parsed_policy, gpu_node, sight).labels


SANDBOX = {"enabled": True}
PASSTHROUGH = ("sandbox-device-plugin", "sandbox-validator", "vfio-manager", "kata-manager", "cc-manager", "client")
VGPU = ("sandbox-device-plugin", "vgpu-manager", "vgpu-device-manager", "sandbox-validator", "cc-manager", "client")


def deployed(*components: str) -> dict[str, str]:
    return {f"{DEPLOY}{component}": "true" for component in components}


@pytest.mark.parametrize(
    ("found", "spec", "expected"),
    [
        pytest.param(node(), {}, {PRESENT: "true", **ALL}, id="discovered"),
        pytest.param(node(gpu=False), {}, {}, id="no GPU"),
        pytest.param(node(gpu=False, **{PRESENT: "true"}), {}, ALL, id="somebody says that there is a GPU"),
        pytest.param(node(**{PRESENT: "true"}), {}, ALL, id="somebody says what discovery says"),
        pytest.param(
            node(gpu=False, owned=(PRESENT,), **{PRESENT: "true"}), {}, {PRESENT: "false"},
            id="what we said ourselves is no evidence",
        ),
        pytest.param(
            node(gpu=False, owned=(PRESENT,), **{PRESENT: "false"}), {}, {PRESENT: "false"}, id="gone, and it stays said",
        ),
        pytest.param(node(**{PRESENT: "false"}), {}, {PRESENT: "true", **ALL}, id="discovery knows better"),
        pytest.param(node(**{names.LABEL_DEPLOY_OPERANDS: "false"}), {}, {PRESENT: "true"}, id="opted out of everything"),
        pytest.param(
            node(**{PLUGIN: "false"}), {}, {PRESENT: "true", **{k: v for k, v in ALL.items() if k != PLUGIN}},
            id="opted out of one",
        ),
        pytest.param(
            node(**{PLUGIN: "paused-for-mig-change"}), {},
            {PRESENT: "true", **{k: v for k, v in ALL.items() if k != PLUGIN}}, id="paused by the MIG manager",
        ),
        pytest.param(node(**{PLUGIN: ""}), {}, {PRESENT: "true", **ALL}, id="empty is as good as absent"),
        pytest.param(
            node(**{names.LABEL_MIG_CAPABLE: "true"}), {}, {PRESENT: "true", **ALL, MIG_MANAGER: "true"}, id="MIG capable",
        ),
        pytest.param(
            node(**{names.LABEL_PRODUCT: "NVIDIA-A100-SXM4-40GB"}), {}, {PRESENT: "true", **ALL, MIG_MANAGER: "true"},
            id="MIG capable by its product",
        ),
        pytest.param(
            node(**{names.LABEL_MIG_CAPABLE: "true", f"{names.PREFIX}vgpu.host-driver-version": "1"}), {},
            {PRESENT: "true", **ALL}, id="a vGPU guest has no MIG",
        ),
        pytest.param(
            node(**{names.LABEL_WORKLOAD_CONFIG: "vm-vgpu"}), {}, {PRESENT: "true", **ALL},
            id="workload label without virtual machines",
        ),
        pytest.param(
            node(**{names.LABEL_WORKLOAD_CONFIG: "vm-vgpu"}), {"sandboxWorkloads": SANDBOX},
            {PRESENT: "true", **deployed(*VGPU)}, id="virtual GPUs",
        ),
        pytest.param(
            node(**{names.LABEL_WORKLOAD_CONFIG: "nonsense"}), {"sandboxWorkloads": SANDBOX}, {PRESENT: "true", **ALL},
            id="an unknown workload is the default",
        ),
        pytest.param(
            node(), {"sandboxWorkloads": {**SANDBOX, "defaultWorkload": "vm-passthrough"}},
            {PRESENT: "true", **deployed(*PASSTHROUGH)}, id="virtual machines by default",
        ),
        pytest.param(
            node(), {"sandboxWorkloads": {**SANDBOX, "defaultWorkload": "vm-passthrough", "mode": "kata"}},
            {PRESENT: "true", **deployed("kata-sandbox-device-plugin", *PASSTHROUGH[1:])}, id="Kata containers",
        ),
        pytest.param(
            node(**{names.LABEL_MIG_CAPABLE: "true"}), {"migManager": {"config": {"default": "all-disabled"}}},
            {PRESENT: "true", **ALL, MIG_MANAGER: "true", names.LABEL_MIG_CONFIG: "all-disabled"}, id="told where MIG begins",
        ),
        pytest.param(
            node(**{names.LABEL_MIG_CAPABLE: "true", names.LABEL_MIG_CONFIG: "all-1g.5gb"}),
            {"migManager": {"config": {"default": "all-disabled"}}},
            {PRESENT: "true", **ALL, MIG_MANAGER: "true"}, id="somebody chose a MIG layout",
        ),
        pytest.param(
            node(**{names.LABEL_MIG_CAPABLE: "true"}), {"migManager": {"config": {"default": ""}}},
            {PRESENT: "true", **ALL, MIG_MANAGER: "true"}, id="the policy says nothing of MIG",
        ),
        pytest.param(
            node(owned=(MIG_MANAGER,), **{names.LABEL_MIG_CAPABLE: "false", MIG_MANAGER: "true"}), {},
            {PRESENT: "true", **ALL}, id="MIG capable no longer",
        ),
    ],
)  # fmt: skip
def test_presence_and_deployment(found: Node, spec: dict[str, Any], expected: dict[str, str]) -> None:
    """What discovery and people say becomes what components are deployed by."""
    assert expected == wanted_labels(found, parsed(**spec), None)


@pytest.mark.parametrize(
    ("found", "spec", "gpu_node", "expected"),
    [
        pytest.param(node(), {}, reported(FACTS), FACTS, id="reported"),
        pytest.param(node(), {"gfd": {"enabled": False}}, reported(FACTS), {}, id="switched off"),
        pytest.param(node(**{f"{DEPLOY}gpu-feature-discovery": "false"}), {}, reported(FACTS), {}, id="opted out"),
        pytest.param(node(**{names.LABEL_DEPLOY_OPERANDS: "false"}), {}, reported(FACTS), {}, id="opted out of everything"),
        pytest.param(node(**{PLUGIN: "false"}), {}, reported(FACTS), {}, id="nobody serves what was reported"),
        pytest.param(node(**{PLUGIN: "paused-for-mig-change"}), {}, reported(FACTS), FACTS, id="paused for a while"),
        pytest.param(
            node(owned=(names.LABEL_PRODUCT,), **{names.LABEL_MIG_STATE: "pending", names.LABEL_PRODUCT: "A100"}), {},
            reported({names.LABEL_PRODUCT: "A100-MIG-INVALID"}), {names.LABEL_PRODUCT: "A100"},
            id="MIG is being changed",
        ),
        pytest.param(node(), {}, reported(FACTS, uid="another"), {}, id="of a node that had the name before"),
        pytest.param(
            node(), {}, reported({"node-role.kubernetes.io/control-plane": "", PRESENT: "x", PLUGIN: "x", CONFIG: "x"}),
            {}, id="an agent can label nothing but facts",
        ),
        pytest.param(node(), {}, reported({names.LABEL_PRODUCT: "(bad)", f"{names.PREFIX}gpu.machine": "ok"}),
                     {f"{names.PREFIX}gpu.machine": "ok"}, id="one bad value spoils no other"),
        pytest.param(
            node(), {}, reported({f"{names.PREFIX}mig-1g.5gb.me.engines.copy": "1"}),
            {f"{names.PREFIX}mig-1g.5gb.me.engines.copy": "1"}, id="of a MIG profile",
        ),
    ],
)  # fmt: skip
def test_facts(found: Node, spec: dict[str, Any], gpu_node: GPUNode, expected: dict[str, str]) -> None:
    """The agent's facts, and nothing else that it says."""
    wanted = wanted_labels(found, parsed(**spec), gpu_node)

    assert expected == {key: value for key, value in wanted.items() if key not in {PRESENT, *ALL, MIG_MANAGER}}


def test_one_write_for_facts_and_what_follows() -> None:
    """A node that turns out to be MIG capable gets its facts and the MIG manager's label at once."""
    wanted = wanted_labels(node(), parsed(), reported({names.LABEL_MIG_CAPABLE: "true"}))

    assert (wanted[names.LABEL_MIG_CAPABLE], wanted[MIG_MANAGER]) == ("true", "true")


@pytest.mark.parametrize(
    ("found", "wanted", "expected"),
    [
        pytest.param(node(), {PRESENT: "true"}, ((), False, ""), id="new"),
        pytest.param(node(owned=(PRESENT,), **{PRESENT: "true"}), {PRESENT: "true"}, None, id="as it should be"),
        pytest.param(node(owned=(PRESENT,), **{PRESENT: "true"}), {}, ((PRESENT,), False, ""), id="ours, and no longer wanted"),
        pytest.param(node(**{PRESENT: "true"}), {}, None, id="somebody else's stays"),
        pytest.param(node(**{PRESENT: "false"}), {PRESENT: "true"}, ((), True, "7"), id="somebody else's is overruled"),
        pytest.param(node(owned=(PRESENT,), **{PRESENT: "false"}), {PRESENT: "true"}, ((), False, ""), id="ours changes"),
        pytest.param(node(**{PRESENT: "true"}), {PRESENT: "true"}, ((), False, ""), id="shared with somebody"),
    ],
)  # fmt: skip
def test_change(found: Node, wanted: dict[str, str], expected: tuple[tuple[str, ...], bool, str] | None) -> None:
    """Only what differs is written; force is for facts, and comes with the version of the node that was looked at."""
    change = nodes.build_change(found, Wanted(labels=wanted))

    assert expected == ((change.removed, change.force, change.resource_version) if change is not None else None)


def test_opt_out_and_back() -> None:
    """A person's `false` is honoured as long as it is there, and the agent with it."""
    start, _ = settle(snapshot(node()))
    [found] = start.nodes
    opted = replace(found, labels={**found.labels, PLUGIN: "false"}, owned=found.owned - {PLUGIN})

    out, _ = settle(replace(start, nodes=(opted,)))
    assert out.nodes[0].labels[PLUGIN] == "false"

    removed = {key: value for key, value in out.nodes[0].labels.items() if key != PLUGIN}
    back, _ = settle(replace(out, nodes=(replace(out.nodes[0], labels=removed),)))
    assert back.nodes[0].labels[PLUGIN] == "true"


def test_labels_go_with_the_policy() -> None:
    """Without a policy, what is ours goes, and what others wrote stays."""
    mine = settle(snapshot(node(**{f"{DEPLOY}dcgm": "false"})), labels=FACTS)[0]

    after, _ = settle(replace(mine, policies=()))

    assert after.nodes[0].labels == {PCI: "true", f"{DEPLOY}dcgm": "false"}
    assert after.gpu_nodes == ()


def test_lost_gpu() -> None:
    """A node that loses its GPUs is told so, and loses its GPUNode and everything deployed."""
    start, _ = settle(snapshot(node()), labels=FACTS)
    [found] = start.nodes
    blind = replace(found, labels={key: value for key, value in found.labels.items() if key != PCI})

    after, _ = settle(replace(start, nodes=(blind,), settings=replace(SETTINGS, discovery_grace_seconds=0)))

    assert after.nodes[0].labels == {PRESENT: "false"}
    assert after.gpu_nodes == ()


def test_replaced_node() -> None:
    """A new Node under an old name gets a new GPUNode: that of the old one goes first."""
    start, _ = settle(snapshot(node()))

    after, _ = settle(replace(start, nodes=(replace(node(), uid="another"),)))

    assert after.gpu_nodes[0].node_uid == "another"


def test_agent_switched_off() -> None:
    """With the device plugin disabled there is no GPUNode, so nobody reads old reports as news."""
    start, _ = settle(snapshot(node()))

    after, _ = settle(replace(start, policies=(policy(devicePlugin={"enabled": False}),)))

    assert after.gpu_nodes == ()
    assert after.objects == ()
