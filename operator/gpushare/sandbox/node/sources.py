"""What volumes hold: read from the API server, written below the node's root. Called by the pod's worker."""

from __future__ import annotations

import base64
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gpushare.domain import manifests
from gpushare.domain.manifests import Manifest
from gpushare.kube.cluster import Cluster
from gpushare.sandbox.apiserver.objects import times
from gpushare.sandbox.node import environment, volumes
from gpushare.sandbox.node.environment import Surroundings
from gpushare.sandbox.node.volumes import HostFolders, MountFailed

_RENEW_AT = 0.8
"""The part of a token's life after which a kubelet writes a new one."""


@dataclass(frozen=True, slots=True)
class Mounted:
    """A volume that is ready."""

    path: Path
    renew_at: float | None = None
    """When a token in it must be replaced, in seconds since 1970; None: never."""


class References:
    """ConfigMaps and Secrets that a pod refers to, each read once: make a new one for each try."""

    def __init__(self, cluster: Cluster, namespace: str) -> None:
        self._cluster = cluster
        self._namespace = namespace
        self._known: dict[tuple[str, str], Manifest | None] = {}

    async def config_map(self, name: str) -> Manifest | None:
        """A ConfigMap, or None when there is none of that name. Raises as `Cluster.get`."""
        return await self._read(manifests.CONFIG_MAP, name)

    async def secret(self, name: str) -> Manifest | None:
        """A Secret with `data` decoded to text, or None. Raises as `Cluster.get`."""
        found = await self._read(manifests.SECRET, name)
        if found is None:
            return None
        return {**found, "data": {key: value.decode(errors="replace") for key, value in content_of(found).items()}}

    async def content(self, kind: manifests.Kind, name: str) -> dict[str, bytes] | None:
        """Content by key, or None when there is no such object."""
        found = await self._read(kind, name)
        return None if found is None else content_of(found)

    async def _read(self, kind: manifests.Kind, name: str) -> Manifest | None:
        key = kind.kind, name
        if key not in self._known:
            self._known[key] = await self._cluster.get(kind, name, self._namespace)
        return self._known[key]


def content_of(found: Manifest) -> dict[str, bytes]:
    """The keys of a ConfigMap or a Secret with what they hold."""
    plain = found.get("data") or {}
    if found["kind"] == "Secret":
        return {key: base64.b64decode(value) for key, value in plain.items()}
    binary = {key: base64.b64decode(value) for key, value in (found.get("binaryData") or {}).items()}
    return {key: value.encode() for key, value in plain.items()} | binary


class VolumeSources:
    """Sets up the volumes of one pod."""

    def __init__(self, cluster: Cluster, folders: HostFolders, pod: Manifest, around: Surroundings) -> None:
        self._cluster = cluster
        self._folders = folders
        self._pod = pod
        self._around = around

    async def mount(self, volume: Mapping[str, Any]) -> Mounted:
        """Sets up one volume, or brings its content up to date.

        Raises:
            MountFailed: something that it refers to is not there.
            GpuShareError: the API server cannot be asked, or refuses.
        """
        name = volume["name"]
        if host_path := volume.get("hostPath"):
            return Mounted(volumes.mount_host_path(self._folders, name, host_path))
        folder = self._folders.volume(self._pod["metadata"]["uid"], name)
        folder.mkdir(parents=True, exist_ok=True)
        sources = list(_sources_of(volume))
        if not sources:
            return Mounted(folder)  # emptyDir, and every kind of storage that has no content here
        references = self._fresh_references()
        files: dict[str, bytes] = {}
        renew_at = None
        for source in sources:
            if token := source.get("serviceAccountToken"):
                files[token["path"]], renew_at = await self._token(token)
            else:
                files |= await self._files(name, source, references)
        volumes.write_files(folder, files)
        return Mounted(folder, renew_at)

    async def check(self, volume: Mapping[str, Any]) -> None:
        """Raises as `mount` where a ConfigMap or Secret is missing, and does nothing else: for pods that only seem to run."""
        references = self._fresh_references()
        for source in _sources_of(volume):
            if "serviceAccountToken" not in source:
                await self._files(volume["name"], source, references)

    def _fresh_references(self) -> References:
        return References(self._cluster, self._pod["metadata"]["namespace"])

    async def _files(self, volume: str, source: Mapping[str, Any], references: References) -> dict[str, bytes]:
        if reference := source.get("configMap"):
            name = reference["name"]
            content = await references.content(manifests.CONFIG_MAP, name)
            return _chosen(
                volume,
                reference,
                content,
                f'configmap "{name}" not found',
                "configmap references non-existent config key",
            )
        if reference := source.get("secret"):
            name = reference["name"]
            content = await references.content(manifests.SECRET, name)
            return _chosen(
                volume, reference, content, f'secret "{name}" not found', "references non-existent secret key"
            )
        return {
            item["path"]: self._downward(item).encode() for item in (source.get("downwardAPI") or {}).get("items") or ()
        }

    def _downward(self, item: Mapping[str, Any]) -> str:
        if reference := item.get("resourceFieldRef"):
            containers = [*(self._pod["spec"].get("initContainers") or ()), *self._pod["spec"]["containers"]]
            container = next(one for one in containers if one["name"] == reference["containerName"])
            return environment.resource_of(container, reference, self._around.allocatable)
        return environment.field_of(self._pod, item["fieldRef"]["fieldPath"], self._around)

    async def _token(self, source: Mapping[str, Any]) -> tuple[bytes, float]:
        metadata = self._pod["metadata"]
        audience = source.get("audience")
        request = {
            "apiVersion": "authentication.k8s.io/v1",
            "kind": "TokenRequest",
            "metadata": {"namespace": metadata["namespace"]},
            "spec": {
                "audiences": [audience] if audience else [],
                "expirationSeconds": source.get("expirationSeconds") or 3600,
                "boundObjectRef": {
                    "apiVersion": "v1", "kind": "Pod", "name": metadata["name"], "uid": metadata["uid"],
                },
            },
        }  # fmt: skip
        account = self._pod["spec"].get("serviceAccountName") or "default"
        status = (await self._cluster.create(request, subresource="token", name=account))["status"]
        now = time.time()
        life = times.epoch_of(status["expirationTimestamp"]) - now
        return status["token"].encode(), now + life * _RENEW_AT


def _sources_of(volume: Mapping[str, Any]) -> Iterable[Mapping[str, Any]]:
    """The sources of any volume that has content, in the form of a projected one."""
    if projected := volume.get("projected"):
        yield from projected.get("sources") or ()
    elif secret := volume.get("secret"):
        yield {"secret": {**secret, "name": secret["secretName"]}}
    else:
        yield from ({key: volume[key]} for key in ("configMap", "downwardAPI") if volume.get(key))


def _chosen(
    volume: str, reference: Mapping[str, Any], content: Mapping[str, bytes] | None, absent: str, no_key: str
) -> dict[str, bytes]:
    """The files that a reference wants of a ConfigMap or Secret."""
    optional = bool(reference.get("optional"))
    if content is None:
        if optional:
            return {}
        raise MountFailed(volume, absent)
    items = reference.get("items")
    if not items:
        return dict(content)
    files = {item["path"]: content[item["key"]] for item in items if item["key"] in content}
    missing = next((item["key"] for item in items if item["key"] not in content), None)
    if missing is not None and not optional:
        raise MountFailed(volume, f"{no_key}: {missing}")
    return files
