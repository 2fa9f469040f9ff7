"""OCI image archives: layers packed reproducibly, and what a runtime has to know about them.

The format is that of the OCI image specification (image layout, version 1.0.0), as `ctr images import` and `skopeo` read it.
"""

from __future__ import annotations

import hashlib
import io
import json
import platform
import tarfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

_TYPE = "application/vnd.oci.image"
_ARCHITECTURE = {"x86_64": "amd64", "aarch64": "arm64"}.get(platform.machine(), platform.machine())
_PATH = "PATH=/usr/local/bin:/usr/bin:/bin"
_CHUNK = 1 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Image:
    """What an archive is made from."""

    names: tuple[str, ...]
    """References by which pods name it."""
    layers: tuple[Path, ...]
    """Packed by `pack`, the lowest first."""
    entrypoint: tuple[str, ...]
    environ: tuple[str, ...] = ()
    """`NAME=value`, besides PATH."""


@dataclass(frozen=True, slots=True)
class _Archive:
    tar: tarfile.TarFile

    def add(self, name: str, content: bytes) -> None:
        info = tarfile.TarInfo(name)
        info.size = len(content)
        self.tar.addfile(info, io.BytesIO(content))

    def add_json(self, kind: str, body: object) -> dict[str, Any]:
        content = json.dumps(body, sort_keys=True).encode()
        digest = hashlib.sha256(content).hexdigest()
        self.add(f"blobs/sha256/{digest}", content)
        return {"mediaType": f"{_TYPE}.{kind}", "digest": f"sha256:{digest}", "size": len(content)}

    def add_layer(self, path: Path) -> dict[str, Any]:
        with path.open("rb") as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()
        info = tarfile.TarInfo(f"blobs/sha256/{digest}")
        info.size = path.stat().st_size
        with path.open("rb") as file:
            self.tar.addfile(info, file)
        return {"mediaType": f"{_TYPE}.layer.v1.tar", "digest": f"sha256:{digest}", "size": info.size}


def pack(root: Path, layer: Path) -> None:
    """A folder as a layer: all files belong to root and have no times, so that equal folders give equal layers."""

    def plain(info: tarfile.TarInfo) -> tarfile.TarInfo:
        info.uid = info.gid = info.mtime = 0
        info.uname = info.gname = ""
        return info

    with tarfile.open(layer, "w", format=tarfile.PAX_FORMAT) as tar:
        tar.add(root, ".", filter=plain)


def write(image: Image, out: Path) -> None:
    """Writes the archive of one image, which may have several names."""
    with tarfile.open(out, "w") as tar:
        archive = _Archive(tar)
        layers = [archive.add_layer(layer) for layer in image.layers]
        config = {
            "architecture": _ARCHITECTURE, "os": "linux",
            # Layers are not compressed: the digest of each is that of its content.
            "rootfs": {"type": "layers", "diff_ids": [layer["digest"] for layer in layers]},
            "config": {"Env": [_PATH, *image.environ], "Entrypoint": list(image.entrypoint), "User": "0:0"},
        }  # fmt: skip
        manifest = archive.add_json("manifest.v1+json", {
            "schemaVersion": 2, "mediaType": f"{_TYPE}.manifest.v1+json",
            "config": archive.add_json("config.v1+json", config), "layers": layers,
        })  # fmt: skip
        archive.add("oci-layout", b'{"imageLayoutVersion": "1.0.0"}')
        archive.add("index.json", json.dumps({"schemaVersion": 2, "manifests": _named(manifest, image.names)}).encode())


def _named(manifest: dict[str, Any], names: Sequence[str]) -> list[dict[str, Any]]:
    return [
        {
            **manifest,
            "platform": {"architecture": _ARCHITECTURE, "os": "linux"},
            "annotations": {
                "io.containerd.image.name": name,
                "org.opencontainers.image.ref.name": name.rpartition(":")[2],
            },
        }
        for name in names
    ]
