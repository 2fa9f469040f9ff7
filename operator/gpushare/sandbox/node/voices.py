"""How a kubelet speaks in Events: under its node's name, and about one container of a pod where it means that one.

Made by the node, given to `loops.recording.Recorder`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from gpushare.domain.manifests import Manifest
from gpushare.sandbox.loops.events import CountedEvents, Create, Event, Write

_FIELD_PATH = "fieldPath"


def about_node(name: str) -> Manifest:
    """A kubelet calls its Node by its name, where others write the uid."""
    return {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "uid": name}}


def about_container(pod: Manifest, name: str, *, init: bool) -> dict[str, Any]:
    """One container of a pod."""
    return {**pod, _FIELD_PATH: f"spec.{'initContainers' if init else 'containers'}{{{name}}}"}


@dataclass(slots=True)
class KubeletEvents:
    """Merges events as every client of Kubernetes does, those about one container apart from those about another."""

    node: str
    _by_path: dict[str, CountedEvents] = field(default_factory=dict)

    def build_write(self, event: Event, now: float) -> Write | None:
        """See `loops.recording.Merging`."""
        path = str(event.about.get(_FIELD_PATH, ""))
        counted = self._by_path.setdefault(path, CountedEvents("kubelet"))
        write = counted.build_write(event, now)
        if isinstance(write, Create):
            write.manifest["source"]["host"] = write.manifest["reportingInstance"] = self.node
            if path:
                write.manifest["involvedObject"][_FIELD_PATH] = path
        return write
