"""Kinds that the server serves, built in or made by CustomResourceDefinitions, and how they are found.

`kinds` holds the table of built-in ones; every other module asks the `Registry`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, TypeAlias

from gpushare.domain.manifests import Manifest
from gpushare.sandbox.apiserver import statuses
from gpushare.sandbox.apiserver.objects import schemas
from gpushare.sandbox.apiserver.objects.schemas import GroupVersionKind, Schema

Key: TypeAlias = tuple[str, str]
"""Group and plural: under which objects are stored, whatever version or view they are asked for in."""

VERBS = ("create", "delete", "deletecollection", "get", "list", "patch", "update", "watch")
CUSTOM_VERBS = ("delete", "deletecollection", "get", "list", "patch", "create", "update", "watch")
"""The order in which a real server lists the verbs of custom resources."""
CUSTOM_RESOURCE_DEFINITIONS: Key = ("apiextensions.k8s.io", "customresourcedefinitions")
_FREE: Mapping[str, Any] = {"x-kubernetes-preserve-unknown-fields": True}
NAMESPACES: Key = ("", "namespaces")
PODS: Key = ("", "pods")
NODES: Key = ("", "nodes")


@dataclass(frozen=True, slots=True)
class View:
    """A second form of stored objects: how to show it, and how to read it back."""

    stored_as: Resource
    """The kind in whose form the objects are stored."""
    show: Callable[[Manifest], Manifest]
    read: Callable[[Manifest], Manifest]
    stored_field: Callable[[str], str]
    """Where a field selector finds what it names."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Resource:
    """One kind in one version."""

    group: str
    version: str
    kind: str
    plural: str
    namespaced: bool
    singular: str = ""
    short_names: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    subresources: tuple[str, ...] = ()
    verbs: tuple[str, ...] = VERBS
    fields: tuple[str, ...] = ()
    """Field selectors besides `metadata.name` and `metadata.namespace`."""
    has_generation: bool = False
    unconditional_update: bool = True
    """Whether a PUT may leave out the resourceVersion."""
    returns_deleted: bool = False
    """Whether DELETE answers with the object, rather than with a Status."""
    definition: Manifest | None = None
    """The CustomResourceDefinition, for custom resources."""
    view: View | None = None

    @property
    def custom(self) -> bool:
        """Whether a CustomResourceDefinition made it."""
        return self.definition is not None

    @cached_property
    def key(self) -> Key:
        """Where its objects are stored."""
        return (self.group, self.plural) if self.view is None else self.view.stored_as.key

    @property
    def stored(self) -> Resource:
        """The kind in whose form its objects are stored: itself, but for views."""
        return self if self.view is None else self.view.stored_as

    @cached_property
    def api_version(self) -> str:
        """As manifests spell it."""
        return f"{self.group}/{self.version}" if self.group else self.version

    @property
    def path(self) -> str:
        """URL path of its group and version, without the leading slash, as OpenAPI names it."""
        return f"apis/{self.api_version}" if self.group else f"api/{self.version}"

    @cached_property
    def crd_version(self) -> Manifest:
        """The entry of `spec.versions` that this is; empty for built-in kinds."""
        versions = self.definition["spec"]["versions"] if self.definition else []
        return next((entry for entry in versions if entry["name"] == self.version), {})

    @cached_property
    def schema(self) -> Schema:
        """What is known about its objects."""
        if not self.custom:
            return schemas.definition(GroupVersionKind(self.group, self.version, self.kind))
        return schemas.custom(self.crd_version.get("schema", {}).get("openAPIV3Schema", _FREE))

    @property
    def has_status(self) -> bool:
        """Whether status is written apart."""
        return "status" in self.subresources


@dataclass(slots=True)
class Registry:
    """All kinds served at the moment. CustomResourceDefinitions come and go."""

    _resources: dict[tuple[str, str, str], Resource] = field(default_factory=dict)
    listeners: list[Callable[[], None]] = field(default_factory=list)
    """Called after each change of the custom kinds: caches of OpenAPI pages listen."""
    _stored: dict[Key, Resource] = field(default_factory=dict)
    _groups: dict[str, list[str]] = field(default_factory=dict)

    def add(self, resources: Iterable[Resource]) -> None:
        """Serves these kinds from now on."""
        for resource in resources:
            self._resources[resource.group, resource.version, resource.plural] = resource
        self._tell()

    def define(self, crd: Manifest) -> None:
        """Serves what a CustomResourceDefinition says, in place of what it said before."""
        self._drop(crd)
        self.add(_defined(crd))

    def undefine(self, crd: Manifest) -> None:
        """Serves the kinds of a CustomResourceDefinition no more."""
        self._drop(crd)
        self._tell()

    def __iter__(self) -> Iterator[Resource]:
        return iter(tuple(self._resources.values()))

    def find(self, group: str, version: str, plural: str) -> Resource:
        """The kind behind a URL. Raises `ApiError` 404."""
        try:
            return self._resources[group, version, plural]
        except KeyError:
            raise statuses.no_such_resource() from None

    def find_kind(self, api_version: str, kind: str) -> Resource | None:
        """The kind that a manifest or an owner reference names."""
        return next((each for each in self if each.api_version == api_version and each.kind == kind), None)

    @property
    def stored(self) -> Mapping[Key, Resource]:
        """The kinds whose objects are stored, each once, in its preferred version."""
        return self._stored

    def versions(self, group: str, version: str) -> list[Resource]:
        """All kinds of one group and version. Raises `ApiError` 404 when there is none."""
        found = [each for each in self if (each.group, each.version) == (group, version)]
        if not found:
            raise statuses.no_such_resource()
        return found

    @property
    def groups(self) -> Mapping[str, Sequence[str]]:
        """The versions of each group, the preferred one first."""
        return self._groups

    def _drop(self, crd: Manifest) -> None:
        key = (crd["spec"]["group"], crd["spec"]["names"]["plural"])
        for at, resource in tuple(self._resources.items()):
            if resource.custom and resource.key == key:
                del self._resources[at]

    def _tell(self) -> None:
        self._stored, self._groups = {}, {}
        for resource in self:
            if "list" in resource.verbs and not resource.view:
                self._stored.setdefault(resource.key, resource)
            versions = self._groups.setdefault(resource.group, [])
            if resource.version not in versions:
                versions.append(resource.version)
        for listener in self.listeners:
            listener()


def _defined(crd: Manifest) -> Iterator[Resource]:
    spec = crd["spec"]
    names = spec["names"]
    for version in spec["versions"]:
        if version.get("served"):
            yield Resource(
                group=spec["group"],
                version=version["name"],
                kind=names["kind"],
                plural=names["plural"],
                namespaced=spec["scope"] == "Namespaced",
                singular=names.get("singular") or names["kind"].lower(),
                short_names=tuple(names.get("shortNames", ())),
                categories=tuple(names.get("categories", ())),
                subresources=tuple(name for name in ("status", "scale") if name in version.get("subresources", {})),
                verbs=CUSTOM_VERBS,
                fields=tuple(entry["jsonPath"].lstrip(".") for entry in version.get("selectableFields", ())),
                has_generation=True,
                unconditional_update=False,
                definition=crd,
            )
