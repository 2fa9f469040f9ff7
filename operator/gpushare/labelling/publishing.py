"""Where labels go: a file that node feature discovery reads, a NodeFeature object that it watches, or standard output."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, Protocol, TextIO

from gpushare import names
from gpushare.domain import manifests
from gpushare.domain.manifests import Manifest
from gpushare.errors import Conflict, GpuShareError
from gpushare.host.files import write_atomically
from gpushare.kube.cluster import Cluster

_READABLE: Final = 0o644
"""Node feature discovery need not run as root."""
_TRIES: Final = 3


class Output(Protocol):
    """One of the three."""

    async def publish(self, labels: Mapping[str, str]) -> None:
        """Makes these the labels. Raises OSError or GpuShareError where they cannot be written; the old ones stay then."""
        ...


class LabelFile:
    """`key=value` lines. Never taken away: node feature discovery would drop the labels of a node that only restarts."""

    def __init__(self, path: Path) -> None:
        self._path = path

    async def publish(self, labels: Mapping[str, str]) -> None:
        """Writes the file, unless it says the same already."""
        text = text_of(labels)
        if not self._path.is_file() or self._path.read_bytes() != text.encode():
            write_atomically(self._path, text, mode=_READABLE)


class LabelStream:
    """The same lines on standard output."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    async def publish(self, labels: Mapping[str, str]) -> None:
        """Writes them out, every time."""
        self._stream.write(text_of(labels))
        self._stream.flush()


class NodeFeature:
    """The object of one node, with the name, content and owners that GPU feature discovery gives it."""

    def __init__(self, cluster: Cluster, *, namespace: str, node: str, pod: str, log: logging.Logger) -> None:
        """`pod`: the one that this process runs in; empty: not known, and the object has no owners."""
        self._cluster = cluster
        self._namespace = namespace
        self._node = node
        self._pod = pod
        self._log = log

    async def publish(self, labels: Mapping[str, str]) -> None:
        """Creates the object, or replaces what differs."""
        owners = await self._owners()
        for left in reversed(range(_TRIES)):
            try:
                await self._write(labels, owners)
            except Conflict:
                # Created or changed by somebody else since it was read: read again.
                if not left:
                    raise
            else:
                return

    async def _write(self, labels: Mapping[str, str], owners: list[Manifest] | None) -> None:
        wanted = _manifest(self._namespace, self._node, labels, owners or [])
        found = await self._cluster.get(manifests.NODE_FEATURE, wanted["metadata"]["name"], self._namespace)
        if found is None:
            await self._cluster.create(wanted)
            return
        metadata = {**found["metadata"], "labels": wanted["metadata"]["labels"]}
        if owners is not None:
            metadata["ownerReferences"] = owners
        replacement = {**found, "metadata": metadata, "spec": wanted["spec"]}
        if _without_nothing(replacement) != _without_nothing(found):
            await self._cluster.replace(replacement)

    async def _owners(self) -> list[Manifest] | None:
        """The DaemonSet of our pod, and the pod itself; none for another kind of pod. None where they cannot be told now."""
        if not self._pod:
            return []
        try:
            pod = await self._cluster.get(manifests.POD, self._pod, self._namespace)
        except GpuShareError as error:
            self._log.warning("owners of the NodeFeature unknown", extra={"reason": str(error)})
            return None
        if pod is None:
            self._log.warning("owners of the NodeFeature unknown", extra={"reason": f"there is no pod {self._pod}"})
            return None
        above = [owner for owner in pod["metadata"].get("ownerReferences") or () if owner.get("controller")]
        if not above or above[0]["kind"] != manifests.DAEMON_SET.kind:
            return []
        itself = {"apiVersion": "v1", "kind": "Pod", "name": self._pod, "uid": pod["metadata"]["uid"]}
        return [
            {**{key: above[0][key] for key in ("apiVersion", "kind", "name", "uid")}, "controller": True},
            itself,
        ]


def text_of(labels: Mapping[str, str]) -> str:
    """Labels as node feature discovery reads them."""
    return "".join(f"{key}={value}\n" for key, value in sorted(labels.items()))


def _manifest(namespace: str, node: str, labels: Mapping[str, str], owners: list[Manifest]) -> Manifest:
    return {
        "apiVersion": manifests.NODE_FEATURE.api_version,
        "kind": manifests.NODE_FEATURE.kind,
        "metadata": {
            "name": f"nvidia-features-for-{node}",
            "namespace": namespace,
            "labels": {names.LABEL_NFD_NODE: node},
            "ownerReferences": owners,
        },
        "spec": {"features": {"flags": {}, "attributes": {}, "instances": {}}, "labels": dict(labels)},
    }


def _without_nothing(value: Any) -> Any:
    """What is left of JSON without empty mappings and lists: a server need not keep them."""
    if isinstance(value, dict):
        kept = {key: _without_nothing(item) for key, item in value.items()}
        return {key: item for key, item in kept.items() if item not in ({}, [], None)}
    return [_without_nothing(item) for item in value] if isinstance(value, list) else value
