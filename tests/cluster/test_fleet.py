"""Fifty simulated nodes on a real control plane: the chart's controller under real RBAC, real controllers and scheduler.

The controller's pod runs on one of the simulated nodes, where it is the real program with the real token of its account.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, TypeAlias

import pytest

from gpushare import data, names
from gpushare.plan import permissions
from gpushare.plan.permissions import Right
from support import helm
from support.real_cluster import simulated
from support.real_cluster.cluster import RealCluster
from support.real_cluster.given import GivenCluster
from support.real_cluster.kubectl import until
from support.snapshots import time_slicing

NODES = 50
GPUS = 4
POLICY = "cluster-policy"
SIMULATED = json.dumps({names.LABEL_SIMULATED: "true"})
"""Where the controller runs, since real nodes of a given cluster do not have its image."""
Fleet: TypeAlias = RealCluster | GivenCluster


@pytest.fixture(scope="module")
def fleet(any_cluster: Fleet) -> Iterator[Fleet]:
    """The nodes, the chart, the policy of the walk-through, and a configuration. In the end, all of it is gone."""
    with simulated.attached(any_cluster, "--nodes", str(NODES)):
        on_simulated = ("--set-json", f"nodeSelector={SIMULATED}")
        helm.change("install", any_cluster.kubeconfig(), helm.CHART, "--create-namespace", *on_simulated)
        for path in data.path_of("examples").glob("00-*/*.yaml"):
            any_cluster.kubectl("apply", "-f", str(path))
        configure(any_cluster, 2)
        until_shown(any_cluster, GPUS * 2)
        yield any_cluster
        helm.change("uninstall", any_cluster.kubeconfig())
    any_cluster.kubectl("delete", "-f", str(helm.CHART / "crds"))
    any_cluster.kubectl("delete", "namespace", helm.NAMESPACE)


def configure(cluster: Fleet, replicas: int) -> None:
    """Shares every GPU of all nodes."""
    metadata = {"name": "sharing", "namespace": helm.NAMESPACE}
    text = time_slicing(replicas)
    cluster.kubectl.apply({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"any": text}})
    patch = {"spec": {"devicePlugin": {"config": {"name": "sharing", "default": "any"}}}}
    cluster.kubectl("patch", "clusterpolicy", POLICY, "--type=merge", "-p", json.dumps(patch))


def until_shown(cluster: Fleet, shares: int) -> None:
    """Waits until every node shows so many."""

    def holds() -> bool:
        shown = [
            node["status"]["allocatable"].get(names.RESOURCE_GPU)
            for node in cluster.kubectl.items("nodes", "-l", f"{names.LABEL_SIMULATED}=true")
        ]
        assert shown == [str(shares)] * NODES, shown
        return True

    until(f"{NODES} nodes show {shares} shares", holds)


def conditions_of(cluster: Fleet) -> dict[str, dict[str, Any]]:
    """The policy's conditions by their types."""
    return {each["type"]: each for each in cluster.kubectl.get("clusterpolicy", POLICY)["status"]["conditions"]}


def lacks_of(cluster: Fleet) -> str:
    """What the policy says that the controller may not do; empty: it may do everything."""
    permitted = conditions_of(cluster).get("Permitted", {"status": "True"})
    return "" if permitted["status"] == "True" else str(permitted["message"])


def test_a_change_reaches_all(fleet: Fleet) -> None:
    """An edited ConfigMap is in force on every node, and the policy says so."""
    configure(fleet, 3)

    until_shown(fleet, GPUS * 3)
    until(
        "the policy tells",
        lambda: f"applied on {NODES} of {NODES} GPU nodes" in conditions_of(fleet)["RolledOut"]["message"],
    )


def test_labels(fleet: Fleet) -> None:
    """Every node has the labels of its GPUs and of their sharing."""
    selector = f"{names.LABEL_PRESENT}=true,nvidia.com/gpu.product=Tesla-T4-SHARED"

    until("all are labelled", lambda: len(fleet.kubectl.items("nodes", "-l", selector)) == NODES)


def test_pods_find_shares(fleet: Fleet) -> None:
    """The real scheduler spreads a workload over the shares of the nodes."""
    replicas = 2 * NODES
    container = {"name": "main", "image": "any", "resources": {"limits": {names.RESOURCE_GPU: "1"}}}
    labels = {"app": "workload"}
    template = {"metadata": {"labels": labels}, "spec": {"containers": [container]}}
    spec = {"replicas": replicas, "selector": {"matchLabels": labels}, "template": template}
    metadata = {"name": "workload", "namespace": "default"}
    fleet.kubectl.apply({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": metadata, "spec": spec})

    selector = ("-l", "app=workload", "--field-selector=status.phase=Running")
    until("they run", lambda: len(fleet.kubectl.items("pods", *selector)) == replicas)

    fleet.kubectl("delete", "deployment", "workload")


def test_nothing_is_refused(fleet: Fleet) -> None:
    """What the chart grants is enough for the real API server, and the controller says so."""
    until("it may do everything", lambda: not lacks_of(fleet))


@pytest.mark.parametrize(
    ("right", "replicas"),
    [
        pytest.param(Right("", "nodes", "patch"), 5, id="nodes"),
        pytest.param(Right("gpushare.dev", "gpunodes", "patch"), 6, id="gpunodes"),
    ],
)
def test_one_right_is_missing(fleet: Fleet, right: Right, replicas: int) -> None:
    """Without one right the controller goes on, and names it; with it again, nothing is said any more."""
    kept = fleet.kubectl.get("clusterrole", names.CONTROLLER)
    restarts = restarts_of(fleet)
    rules = [
        {**rule, "apiGroups": [group], "resources": [resource], "verbs": verbs}
        for rule in kept["rules"]
        for group in rule.get("apiGroups", ())
        for resource in rule.get("resources", ())
        if (verbs := [verb for verb in rule["verbs"] if Right(group, resource, verb) != right])
    ]
    try:
        replace_rules(fleet, rules)
        configure(fleet, replicas)
        until("the policy names it", lambda: f"may not {right.verb} {right.object}" in lacks_of(fleet))
        assert restarts_of(fleet) == restarts
    finally:
        replace_rules(fleet, kept["rules"])
    until("it may do everything again", lambda: not lacks_of(fleet))
    until_shown(fleet, GPUS * replicas)


def replace_rules(cluster: Fleet, rules: list[dict[str, Any]]) -> None:
    patch = json.dumps({"rules": rules})
    cluster.kubectl("patch", "clusterrole", names.CONTROLLER, "--type=merge", "-p", patch)


def restarts_of(cluster: Fleet) -> list[tuple[str, int]]:
    pods = cluster.kubectl.items("pods", "-n", helm.NAMESPACE, "-l", f"app={names.CONTROLLER}")
    return [(pod["metadata"]["uid"], pod["status"]["containerStatuses"][0]["restartCount"]) for pod in pods]


def test_rights_in_the_test() -> None:
    """The rights that are taken away above are among those that the chart grants."""
    roles = [manifest for manifest in helm.render() if manifest["kind"] == "ClusterRole" and not helm.is_hook(manifest)]
    granted = {right for role in roles for right in permissions.rights_of(role)}

    assert {Right("", "nodes", "patch"), Right("gpushare.dev", "gpunodes", "patch")} <= granted
