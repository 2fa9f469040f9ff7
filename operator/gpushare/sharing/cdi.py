"""CDI specifications: what a container runtime does to a container that was given devices by their CDI names.

Built by the agent from the inventory and what the host has of the driver; `responses` gives out the names, `host.cdi` finds
the files and writes the documents. Kinds, names and edits are those of NVIDIA's device plugin.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias

from gpushare.api.sharing import IdStrategy
from gpushare.domain.devices import Inventory, MigStrategy
from gpushare.sharing.responses import CDI_VENDOR

Document: TypeAlias = Mapping[str, Any]
"""One specification file, as JSON."""

GPU: Final = "gpu"
IMEX_CHANNEL: Final = "imex-channel"
CLASSES: Final = (GPU, IMEX_CHANNEL, "gdrcopy", "gds", "mofed")
"""Each has a file of its own."""
ALL: Final = "all"
"""The only device of gdrcopy, gds and mofed."""
DEFAULT_HOOK: Final = "/usr/bin/nvidia-ctk"
EVERY_HOOK: Final = "all"
"""Stands for all hooks where hooks are disabled."""

_VERSION: Final = "0.5.0"
"""The oldest version of the format that has all that is used here: host paths of device nodes, names that begin with a digit."""
_MOUNT_OPTIONS: Final = ("ro", "nosuid", "nodev", "rbind", "rprivate")
_VOID: Final = "NVIDIA_VISIBLE_DEVICES=void"
"""Keeps NVIDIA's own runtime from adding devices on its own account."""
_CUDA: Final = "libcuda.so"


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """A device node that the host has."""

    path: str
    major: int | None = None
    """None, with the others: what is there is no device; the runtime shall look for itself."""
    minor: int | None = None
    mode: int | None = None
    """Permission bits."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Library:
    """A library of the driver, by its path below the driver's root."""

    path: str
    soname: str = ""
    """The name by which programs load it; empty where the file does not tell."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Extra:
    """What one of gdrcopy, gds and mofed has on the host."""

    nodes: tuple[Node, ...] = ()
    paths: tuple[str, ...] = ()
    """Files and directories, below the driver's root."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DriverFiles:
    """What of the driver a host has."""

    version: str
    root: str = "/"
    """Of the driver's files, on the host."""
    dev_root: str = "/"
    """Of its device nodes, on the host."""
    libraries: tuple[Library, ...] = ()
    programs: tuple[str, ...] = ()
    """Paths below the driver's root."""
    control_nodes: tuple[Node, ...] = ()
    """For every container with a GPU."""
    nodes: Mapping[str, Node] = field(default_factory=dict)
    """Those of GPUs and MIG instances, by path."""
    channels: Mapping[int, Node] = field(default_factory=dict)
    """IMEX channels by number."""
    extras: Mapping[str, Extra] = field(default_factory=dict)
    """By class; only what is switched on."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CdiOptions:
    """How devices are called and which program the hooks are."""

    id_strategy: IdStrategy = IdStrategy.UUID
    hook_path: str = DEFAULT_HOOK
    """On the host."""
    disabled_hooks: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True, kw_only=True)
class Specifications:
    """All documents of a node."""

    documents: Mapping[str, Document]
    """By class; one without a device is left out."""
    missing: Mapping[str, str]
    """Device nodes that the host lacks, by the UUID of the device that cannot be described without them."""


def build_specifications(
    inventory: Inventory, strategy: MigStrategy, driver: DriverFiles, options: CdiOptions
) -> Specifications:
    """Describes every device that the node may give out, each under one name, in order of GPU and MIG instance."""
    devices: list[Document] = []
    missing: dict[str, str] = {}
    for uuid, index, paths in _devices_of(inventory, strategy):
        absent = [path for path in paths if path not in driver.nodes]
        if absent:
            missing[uuid] = ", ".join(absent)
            continue
        name = index if options.id_strategy is IdStrategy.INDEX else uuid
        devices.append(_device(name, [driver.nodes[path] for path in paths], driver))
    channels = [_device(str(number), [node], driver) for number, node in driver.channels.items()]
    found = {
        GPU: _document(GPU, devices, _gpu_edits(driver, options)),
        IMEX_CHANNEL: _document(IMEX_CHANNEL, channels, {"env": [_VOID]}),
        **{name: _extra(name, extra, driver) for name, extra in driver.extras.items()},
    }
    return Specifications(
        documents={name: document for name, document in found.items() if document["devices"]}, missing=missing
    )


def _devices_of(inventory: Inventory, strategy: MigStrategy) -> Iterator[tuple[str, str, Sequence[str]]]:
    """UUID, index and device nodes of each."""
    for gpu in inventory.gpus:
        # Split GPUs are no devices themselves, except where MIG is left alone and they are given out whole.
        if not gpu.mig_enabled or strategy is MigStrategy.NONE:
            yield gpu.uuid, str(gpu.index), gpu.paths
        for mig in gpu.mig:
            yield mig.uuid, f"{gpu.index}:{mig.index}", mig.paths


def _document(kind: str, devices: Sequence[Document], edits: Document) -> Document:
    return {
        "cdiVersion": _VERSION,
        "kind": f"{CDI_VENDOR}/{kind}",
        "devices": list(devices),
        "containerEdits": edits,
    }


def _device(name: str, nodes: Iterable[Node], driver: DriverFiles) -> Document:
    return {"name": name, "containerEdits": {"deviceNodes": _nodes(nodes, driver)}}


def _extra(kind: str, extra: Extra, driver: DriverFiles) -> Document:
    edits: dict[str, Any] = {}
    if extra.nodes:
        edits["deviceNodes"] = _nodes(extra.nodes, driver)
        # Paths alone are there on machines without the feature, too.
        if extra.paths:
            edits["mounts"] = [_mount(path, driver) for path in extra.paths]
    devices = [{"name": ALL, "containerEdits": edits}] if edits else []
    return _document(kind, devices, {"env": [_VOID]})


def _gpu_edits(driver: DriverFiles, options: CdiOptions) -> Document:
    folders = list(dict.fromkeys(_folder(library.path) for library in driver.libraries))
    cuda = next((library.path for library in driver.libraries if _is_cuda(library)), None)
    return {
        "env": [*([f"NVIDIA_CTK_LIBCUDA_DIR={_folder(cuda)}"] if cuda else []), _VOID],
        "deviceNodes": _nodes(driver.control_nodes, driver),
        "mounts": [_mount(path, driver) for path in (*(one.path for one in driver.libraries), *driver.programs)],
        "hooks": list(_hooks(driver, folders, options)),
    }


def _hooks(driver: DriverFiles, folders: Iterable[str], options: CdiOptions) -> Iterator[Document]:
    """What NVIDIA's program does in the container before it starts, in this order: links must be there to be cached."""
    program = options.hook_path.rpartition("/")[2]
    # One program knows the hooks as a subcommand, the other is nothing else.
    words = (program, "hook") if program == "nvidia-ctk" else (program,)
    calls = {
        "create-symlinks": _flags("--link", _links(driver.libraries)),
        "enable-cuda-compat": (f"--host-driver-version={driver.version}",),
        "update-ldcache": _flags("--folder", folders),
        "disable-device-node-modification": (),
        "update-application-profile": (),
    }
    for name, arguments in calls.items():
        if not options.disabled_hooks & {name, EVERY_HOOK}:
            yield {
                "hookName": "createContainer",
                "path": options.hook_path,
                "args": [*words, name, *arguments],
                "env": ["NVIDIA_CTK_DEBUG=false"],
            }


def _links(libraries: Iterable[Library]) -> Iterator[str]:
    """`<target>::<link>` for each name under which programs load what is mounted under its version."""
    for library in libraries:
        folder, name = _folder(library.path), library.path.rpartition("/")[2]
        if library.soname and library.soname != name:
            yield f"{name}::{folder}/{library.soname}"
        if _is_cuda(library):
            # Many programs open it without any version.
            yield f"{_CUDA}.1::{folder}/{_CUDA}"


def _flags(name: str, values: Iterable[str]) -> tuple[str, ...]:
    return tuple(word for value in values for word in (name, value))


def _is_cuda(library: Library) -> bool:
    return library.path.rpartition("/")[2].startswith(f"{_CUDA}.")


def _folder(path: str) -> str:
    return path.rpartition("/")[0]


def _mount(path: str, driver: DriverFiles) -> Document:
    return {"hostPath": _below(driver.root, path), "containerPath": path, "options": list(_MOUNT_OPTIONS)}


def _nodes(nodes: Iterable[Node], driver: DriverFiles) -> list[Document]:
    return [_node(node, driver) for node in nodes]


def _node(node: Node, driver: DriverFiles) -> Document:
    # A number that is 0 is left out, as everybody who writes this format does.
    numbers = {"major": node.major, "minor": node.minor, "fileMode": node.mode}
    return {
        "path": node.path,
        "hostPath": _below(driver.dev_root, node.path),
        **{name: number for name, number in numbers.items() if number},
        "permissions": "rwm",
    }


def _below(root: str, path: str) -> str:
    return root.rstrip("/") + path
