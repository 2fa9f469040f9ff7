"""What a Kubernetes cluster can do for us. `client` and `lean` both are one; the same contract tests run on both."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Protocol, TypeAlias

from gpushare.domain.manifests import Kind, Manifest


class PatchType(StrEnum):
    """The three patch formats, by media type. Server-side apply has its own method."""

    JSON = "application/json-patch+json"
    MERGE = "application/merge-patch+json"
    STRATEGIC = "application/strategic-merge-patch+json"


class EventType(StrEnum):
    """What a watch tells about an object."""

    ADDED = "ADDED"
    MODIFIED = "MODIFIED"
    DELETED = "DELETED"
    BOOKMARK = "BOOKMARK"


@dataclass(frozen=True, slots=True)
class WatchEvent:
    """One line of a watch."""

    type: EventType
    object: Manifest

    @property
    def resource_version(self) -> str:
        """From where a new watch would go on."""
        return str(self.object.get("metadata", {}).get("resourceVersion", ""))


@dataclass(frozen=True, slots=True)
class ObjectList:
    """A list and the version that it shows; `apiVersion` and `kind` are filled into every item."""

    items: tuple[Manifest, ...]
    resource_version: str


Trim: TypeAlias = Callable[[Manifest], Manifest | None]
"""Keeps of an object what somebody needs; None: nothing of it. Called as objects arrive, so that thousands of whole ones are
never in memory together."""


class Cluster(Protocol):
    """Typed access to objects as JSON.

    Every method raises `ClusterUnavailable`, `ClusterRefused` or `Conflict` as `errors` draws them; what is not there is
    None from `get` and False from `delete`.
    """

    async def get(self, kind: Kind, name: str, namespace: str = "") -> Manifest | None:
        """One object, or None when it (or its namespace) does not exist. An unknown kind is `ClusterRefused` with 404."""
        ...

    async def list(
        self, kind: Kind, namespace: str = "", *, labels: str = "", fields: str = "", trim: Trim | None = None
    ) -> ObjectList:
        """All objects that the selectors let through, or what `trim` keeps of them; without a namespace, of all namespaces."""
        ...

    async def names(self, kind: Kind, namespace: str = "", *, labels: str = "") -> frozenset[str]:
        """Only the names of what `list` would give: a hundredth of the bytes."""
        ...

    def watch(
        self, kind: Kind, namespace: str = "", *, labels: str = "", fields: str = "", resource_version: str = ""
    ) -> AsyncGenerator[WatchEvent, None]:
        """Changes after `resource_version`, until the server ends the stream. Raises `Expired` where that is too old."""
        ...

    async def create(self, manifest: Manifest, *, subresource: str = "", name: str = "") -> Manifest:
        """Creates what the manifest says. With a subresource of the object `name` (`binding`, `token`), posts to that."""
        ...

    async def apply(self, manifest: Manifest, *, manager: str, force: bool = False, subresource: str = "") -> Manifest:
        """Server-side apply. `Conflict` when another manager owns a field and `force` is not set."""
        ...

    async def patch(
        self,
        kind: Kind,
        name: str,
        body: Any,
        namespace: str = "",
        *,
        patch_type: PatchType = PatchType.MERGE,
        subresource: str = "",
    ) -> Manifest | None:
        """Patches one object; None when it does not exist."""
        ...

    async def replace(self, manifest: Manifest, *, subresource: str = "") -> Manifest:
        """PUT; `Conflict` when the `resourceVersion` in it is not the current one."""
        ...

    async def delete(
        self, kind: Kind, name: str, namespace: str = "", *, uid: str = "", grace_seconds: int | None = None
    ) -> bool:
        """Deletes one object, only that of the uid where one is given; False when it was not there."""
        ...

    async def close(self) -> None:
        """Ends all connections. Safe to call twice."""
        ...
