"""The cluster as `inspect`, `top` and `explain` look at it: read over its API or from files, in the books of the scheduler."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Final

from gpushare import names
from gpushare.cli import clusters, texts
from gpushare.domain import manifests
from gpushare.domain.gpunode import GPUNode
from gpushare.domain.manifests import Kind, Manifest
from gpushare.errors import UsageError
from gpushare.placement.quotas import Quota
from gpushare.placement.requests import read_request
from gpushare.placement.settings import RequestSettings
from gpushare.scheduler import pods
from gpushare.scheduler.books import Books, Placed
from gpushare.scheduler.flights import Flights
from gpushare.scheduler.limits import Limits
from gpushare.scheduler.pods import SeenPod
from gpushare.scheduler.settings import resources_of
from gpushare.sharing.fractions import REQUESTED

_KINDS: Final = (manifests.NODE, manifests.GPU_NODE, manifests.POD)
_ENDED: Final = ("Succeeded", "Failed")


@dataclass(frozen=True)
class Picture:
    """Nodes and pods at one moment."""

    objects: tuple[Manifest, ...]

    def of(self, kind: Kind) -> list[Manifest]:
        """All objects of a kind."""
        return [each for each in self.objects if (each["apiVersion"], each["kind"]) == (kind.api_version, kind.kind)]

    @cached_property
    def gpu_nodes(self) -> list[GPUNode]:
        """By name."""
        return sorted(map(_read_gpu_node, self.of(manifests.GPU_NODE)), key=lambda node: node.name)

    @cached_property
    def books(self) -> Books:
        """Who holds what, as the scheduler itself would see it after a start."""
        books = Books(Flights(), lambda _: None, lambda _: None)
        for node in self.of(manifests.NODE):
            annotations = node["metadata"].get("annotations") or {}
            kept = {name: annotations[name] for name in (names.ANNOTATION_CORDON,) if name in annotations}
            books.see_annotations(node["metadata"]["name"], kept)
        for gpu_node in self.gpu_nodes:
            books.see_gpu_node(gpu_node)
        resources = resources_of(RequestSettings())
        for pod in filter(_holds_something, self.of(manifests.POD)):
            if (trimmed := pods.trim(pod, resources)) is not None:
                books.see_pod(SeenPod.of(trimmed))
        return books

    @cached_property
    def known_resources(self) -> frozenset[str]:
        """Those that the scheduler of fractions counts, that an agent offers, and that a Node shows, be it 0 by now."""
        shown = {name for node in self.of(manifests.NODE) for name in (node.get("status") or {}).get("capacity") or ()}
        offered = {resource.name for node in self.gpu_nodes for resource in node.status.resources}
        return resources_of(RequestSettings()) | {names.RESOURCE_ALIYUN_COUNT} | offered | shown

    @cached_property
    def idle(self) -> frozenset[str]:
        """Nodes that serve fractions and offer none, as those that lack what is to isolate them."""
        return frozenset(
            node.name
            for node in self.gpu_nodes
            for resource in node.status.resources
            if (mode := node.status.fractions) and resource.name == REQUESTED[mode.dialect] and not resource.total
        )

    def room(self, namespace: str) -> Quota:
        """What is left of the quota of a namespace, where quotas were read."""
        limits = Limits(RequestSettings(), self.books.charges)
        for quota in self.of(manifests.RESOURCE_QUOTA):
            limits.see(quota, False)
        return limits.room(namespace)

    def pod(self, uid: str) -> Manifest | None:
        """One pod by its uid."""
        return next((pod for pod in self.of(manifests.POD) if pod["metadata"].get("uid") == uid), None)

    def units_asked_for(self, placed: Placed, unit_mib: int) -> int:
        """Memory that a pod asks for, all its GPUs together, in units of so many MiB."""
        pod = self.pod(placed.uid)
        request = read_request(pod, RequestSettings()).request if pod else None
        asked = request.containers if request else ()
        return sum(each.gpus * (each.units or each.memory_mib // unit_mib) for each in asked)


def read_picture(files: Iterable[str], kubeconfig: Path | None, *more: Kind) -> Picture:
    """Reads files, or a cluster where none is given: nodes and pods, and objects of more kinds.

    Raises:
        UsageError: a file or the kubeconfig cannot be used.
        GpuShareError: the cluster cannot be reached, or refuses.
    """
    given = tuple(files)
    if given:
        return Picture(tuple(_completed(manifest) for file in given for manifest in texts.read_manifests(file)))
    return Picture(asyncio.run(clusters.read_objects(kubeconfig, ((kind, "") for kind in (*_KINDS, *more)), "")))


def _completed(manifest: Manifest) -> Manifest:
    """A pod that a person wrote, with what the API server would fill in; anything else as it is."""
    if (manifest["apiVersion"], manifest["kind"]) != (manifests.POD.api_version, manifests.POD.kind):
        return manifest
    namespace = manifest["metadata"].get("namespace", "default")
    metadata = {"namespace": namespace, "uid": f"{namespace}/{manifest['metadata']['name']}", **manifest["metadata"]}
    return {**manifest, "metadata": metadata, "spec": {"containers": [], **(manifest.get("spec") or {})}}


def _read_gpu_node(manifest: Manifest) -> GPUNode:
    try:
        return GPUNode.from_json(manifest)
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise UsageError(f"GPUNode {manifest['metadata']['name']} is not as this version writes it: {error}") from error


def _holds_something(pod: Manifest) -> bool:
    return bool(pod["spec"].get("nodeName")) and (pod.get("status") or {}).get("phase") not in _ENDED
