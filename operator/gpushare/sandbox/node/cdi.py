"""CDI as a container runtime does it: names of devices become edits of the container, by the specifications on the node.

Called before each start of a container that a device plugin gave such names.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gpushare.errors import GpuShareError
from gpushare.sharing.responses import ContainerAnswer

_FOLDERS = ("etc/cdi", "var/run/cdi")
"""Later ones win."""
_PREFIX = "cdi.k8s.io/"
"""Of annotations that hold names."""


class DevicesUnknown(GpuShareError):  # noqa: N818 - the state is the name
    """No specification on the node has these names; the container is created again and again until one has."""

    def __init__(self, names: Sequence[str]) -> None:
        message = f"CDI device injection failed: unresolvable CDI devices {', '.join(names)}"
        super().__init__(f"failed to create containerd container: {message}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Edits:
    """What the runtime does to a container."""

    devices: tuple[str, ...] = ()
    """Paths in the container."""
    mounts: tuple[str, ...] = ()
    """Paths in the container."""
    hooks: int = 0


def names_of(answer: ContainerAnswer) -> tuple[str, ...]:
    """Every CDI device that the plugins named in either way, each once."""
    annotated = (value for key, value in answer.annotations.items() if key.startswith(_PREFIX))
    return tuple(dict.fromkeys((*(name for value in annotated for name in value.split(",")), *answer.cdi_devices)))


def resolve(root: Path, names: Iterable[str]) -> Edits:
    """The edits for these devices, by the specifications below the node's root.

    Raises:
        DevicesUnknown: there is none for some of them.
    """
    wanted = tuple(names)
    if not wanted:
        return Edits()
    known = {name: edits for document in _documents(root) for name, edits in _devices_of(document)}
    unknown = [name for name in wanted if name not in known]
    if unknown:
        raise DevicesUnknown(unknown)
    edits = [one for name in wanted for one in known[name]]
    hooks = [hook for one in edits for hook in one.get("hooks") or ()]
    return Edits(
        devices=tuple(dict.fromkeys(node["path"] for one in edits for node in one.get("deviceNodes") or ())),
        mounts=tuple(dict.fromkeys(mount["containerPath"] for one in edits for mount in one.get("mounts") or ())),
        # What all devices of a file need is done once.
        hooks=len({json.dumps(hook) for hook in hooks}),
    )


def _documents(root: Path) -> Iterator[Mapping[str, Any]]:
    for folder in _FOLDERS:
        for path in sorted((root / folder).glob("*.json")):
            yield json.loads(path.read_text(encoding="utf-8"))


def _devices_of(document: Mapping[str, Any]) -> Iterator[tuple[str, Sequence[Mapping[str, Any]]]]:
    common = document.get("containerEdits") or {}
    for device in document["devices"]:
        yield f"{document['kind']}={device['name']}", (common, device["containerEdits"])
