"""The volumes of a pod, and how a container sees them: a folder of symbolic links in place of a mount namespace.

Called by the pod's worker. What volumes hold comes from `sources`; here are only files.
"""

from __future__ import annotations

import os
import secrets
import shutil
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

from gpushare.errors import GpuShareError

ROOT_MOST = 40
"""Longest path of a container's root: unix sockets below it must fit into the 107 bytes that the kernel takes."""


class MountFailed(GpuShareError):  # noqa: N818 - the state is the name
    """A volume cannot be set up now; the text is what a kubelet's FailedMount event says."""

    def __init__(self, volume: str, message: str) -> None:
        super().__init__(f'MountVolume.SetUp failed for volume "{volume}" : {message}')


@dataclass(frozen=True, slots=True)
class HostFolders:
    """The file system of one node, below its root."""

    root: Path

    def host_path(self, path: str) -> Path:
        """A path of the node."""
        return self.root / path.lstrip("/")

    def container_root(self, number: int) -> Path:
        """`/` of one container.

        Raises:
            ValueError: the node's root is too long.
        """
        folder = self.root / "c" / str(number)
        if len(str(folder)) > ROOT_MOST:
            raise ValueError(f"{folder} is longer than {ROOT_MOST} characters: give the nodes a shorter folder")
        return folder

    def volume(self, pod_uid: str, name: str) -> Path:
        """Where the content of a volume lies, as on a real node."""
        return self.root / "var/lib/kubelet/pods" / pod_uid / "volumes" / name

    def remove_pod(self, pod_uid: str) -> None:
        """Removes all volumes of a pod that is gone."""
        shutil.rmtree(self.root / "var/lib/kubelet/pods" / pod_uid, ignore_errors=True)


def mount_host_path(folders: HostFolders, volume: str, source: Mapping[str, Any]) -> Path:
    """The node's path, made or checked as `type` demands.

    Raises:
        MountFailed: it is not what `type` says.
    """
    path, kind = folders.host_path(source["path"]), source.get("type") or ""
    if kind == "FileOrCreate":
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    elif kind == "DirectoryOrCreate" or (not kind and not path.exists()):
        # Without a type the container runtime makes the folder.
        path.mkdir(parents=True, exist_ok=True)
    wrong = {
        "Directory": not path.is_dir(),
        "File": not path.is_file(),
        "Socket": not path.is_socket(),
        "CharDevice": not path.exists(),  # devices of simulated nodes are plain files
    }.get(kind, False)
    if wrong:
        words = {
            "Directory": "a directory",
            "File": "a file",
            "Socket": "a socket file",
            "CharDevice": "a character device",
        }
        raise MountFailed(volume, f"hostPath type check failed: {source['path']} is not {words[kind]}")
    return path


def write_files(folder: Path, files: Mapping[str, bytes]) -> None:
    """Makes `folder` hold exactly these files, each replaced in one step, so that a reader never sees half a file."""
    folder.mkdir(parents=True, exist_ok=True)
    for old in folder.rglob("*"):
        if old.is_file() and str(old.relative_to(folder)) not in files:
            old.unlink()
    for name, content in files.items():
        path = folder / name
        if path.is_file() and path.read_bytes() == content:
            continue
        path.parent.mkdir(parents=True, exist_ok=True)
        fresh = path.with_name(f".{secrets.token_hex(4)}")
        fresh.write_bytes(content)
        fresh.chmod(0o644)
        fresh.replace(path)


def kernel_mounts(folders: HostFolders, *, privileged: bool) -> list[tuple[str, Path]]:
    """What every container sees of its node without asking: `/proc` and `/sys`; a privileged one also `/dev`."""
    names = ("proc", "sys", "dev") if privileged else ("proc", "sys")
    return [(f"/{name}", path) for name in names if (path := folders.host_path(name)).exists()]


def build_root(root: Path, mounts: Sequence[tuple[str, Path]]) -> None:
    """Makes a container's root, in which each mount path is a symbolic link to what is mounted there.

    A mount below another mount becomes a link inside that one's folder, unless the outer folder shows the same already.

    Raises:
        MountFailed: something else is where a link should be.
    """
    shutil.rmtree(root, ignore_errors=True)
    root.mkdir(parents=True)
    (root / "tmp").mkdir()
    for where, target in sorted(mounts, key=lambda mount: len(PurePosixPath(mount[0]).parts)):
        link = root / where.strip("/")
        link.parent.mkdir(parents=True, exist_ok=True)
        if link.is_symlink() and not link.exists():
            link.unlink()  # left by a container that ran before
        if not os.path.lexists(link):
            link.symlink_to(target)
        elif link.resolve() != target.resolve():
            raise MountFailed(PurePosixPath(where).name, f"{where} exists already in what is mounted above it")


def mounts_of(container: Mapping[str, Any], volumes: Mapping[str, Path]) -> Iterator[tuple[str, Path]]:
    """Where each volume of a container is mounted, and what is there."""
    for mount in container.get("volumeMounts") or ():
        target = volumes[mount["name"]]
        sub_path = mount.get("subPath") or ""
        if sub_path:
            target = target / sub_path
            if not target.exists():
                target.mkdir(parents=True)
        yield mount["mountPath"], target
