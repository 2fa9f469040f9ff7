"""The cluster that `gpushare plan` looks at: a real one over its API, or one that files describe."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from gpushare import names
from gpushare.cli import clusters
from gpushare.controller import options
from gpushare.controller.snapshotting import WATCHED, Store, sighting_of
from gpushare.domain import manifests
from gpushare.domain.gpunode import GPUNode
from gpushare.domain.manifests import Manifest
from gpushare.errors import ConfigurationError, UsageError
from gpushare.nvml.reading import read_inventory
from gpushare.nvml.simulated import SimulatedNvml
from gpushare.plan import policies
from gpushare.plan.hardware import inventory_of
from gpushare.plan.outlook import Hardware
from gpushare.plan.snapshot import Settings, Snapshot
from gpushare.sandbox import scenario

_WATCHED = {watched.kind: watched for watched in WATCHED}


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """A cluster before anything is laid over it."""

    objects: tuple[Manifest, ...]
    hardware: Mapping[str, Hardware]
    """By node."""
    settings: Settings
    """Those of the controller that runs there; where there is none, those that one would have by itself."""


def read_cluster(kubeconfig: Path | None, namespace: str) -> Seen:
    """What the API server has. Raises as `clusters.read_objects`."""
    kinds = [*((watched.kind, watched.labels) for watched in WATCHED), (manifests.GPU_CLUSTER, "")]
    kinds.append((manifests.DEPLOYMENT, f"app={names.CONTROLLER}"))
    found = asyncio.run(clusters.read_objects(kubeconfig, kinds, namespace))
    deployments = [each for each in found if manifests.kind_of(each) == manifests.DEPLOYMENT]
    objects = tuple(each for each in found if each not in deployments)
    told = [GPUNode.from_json(each) for each in objects if manifests.kind_of(each) == manifests.GPU_NODE]
    return Seen(
        objects=objects,
        hardware={gpu_node.name: _hardware_of(gpu_node) for gpu_node in told},
        settings=_settings_of(deployments, namespace),
    )


def _settings_of(deployments: Iterable[Manifest], namespace: str) -> Settings:
    """As the controller's own container has them, by the controller's own command line."""
    for deployment in deployments:
        container = deployment["spec"]["template"]["spec"]["containers"][0]
        environ = {each["name"]: each.get("value", "") for each in container.get("env") or ()}
        try:
            given = options.parse((container.get("args") or [""])[1:], environ)
        except UsageError:
            break  # of another version than we are
        return options.settings_of(given, namespace)
    # Which image the operator has been given decides nothing about sharing.
    return Settings(namespace=namespace, image=names.IMAGE)


def _hardware_of(gpu_node: GPUNode) -> Hardware:
    # An agent that has never decided anything has not read its GPUs either.
    is_told = bool(gpu_node.status.devices) or gpu_node.status.applied_revision is not None
    return Hardware(inventory=inventory_of(gpu_node.status) if is_told else None, status=gpu_node.status)


def describe_cluster(file: Path, namespace: str) -> Seen:
    """A cluster without an operator, of the nodes of a sandbox's scenario.

    Raises:
        UsageError: the file cannot be used.
    """
    try:
        nodes = scenario.load(file).nodes
    except ConfigurationError as error:
        raise UsageError("\n".join(f"{file}: {problem}" for problem in error.problems)) from error
    hardware = {
        node.spec.name: Hardware(
            inventory=read_inventory(SimulatedNvml.from_mapping(node.hardware, seed=node.spec.name))
        )
        for node in nodes
        if node.hardware
    }
    objects = tuple(
        {
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {"name": node.spec.name, "uid": node.spec.name, "labels": dict(node.spec.labels)},
        }
        for node in nodes
    )
    return Seen(objects=objects, hardware=hardware, settings=_settings_of((), namespace))


def build_snapshot(objects: Iterable[Manifest], settings: Settings) -> Snapshot:
    """What the controller would know of these objects, by its own store."""
    store = Store(settings)
    config_maps = []
    for manifest in objects:
        key = manifests.key_of(manifest)
        if key.kind == manifests.GPU_CLUSTER:
            store.gpu_clusters = (*store.gpu_clusters, key.name)
        elif key.kind == manifests.CONFIG_MAP and key.namespace != settings.namespace:
            config_maps.append(key)
        else:
            store.see(sighting_of(_WATCHED[key.kind], manifest, settings))
    snapshot = store.snapshot()
    missing = policies.missing_config_map(snapshot)
    return replace(snapshot, config_maps_elsewhere=tuple(key for key in config_maps if key.name == missing))
