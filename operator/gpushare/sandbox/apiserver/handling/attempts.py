"""What somebody is about to do to an object, as admission policies and webhooks are told of it, and which rules mean it."""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

from gpushare.domain.manifests import Manifest
from gpushare.sandbox.apiserver.objects import selectors
from gpushare.sandbox.apiserver.requests import User
from gpushare.sandbox.apiserver.resources import NAMESPACES, Resource
from gpushare.sandbox.apiserver.storage import Store

CREATE: Final = "CREATE"
UPDATE: Final = "UPDATE"
DELETE: Final = "DELETE"
_ANY: Final = "*"


@dataclass(frozen=True, kw_only=True)
class Attempt:
    """One write or delete, before it is done."""

    operation: str
    resource: Resource
    user: User
    new: Manifest | None
    """The object as it would be stored; None where it is deleted."""
    old: Manifest | None
    subresource: str = ""
    dry_run: bool = False

    @property
    def object(self) -> Manifest:
        """The object that it is about: as it will be, or as it was."""
        found = self.new if self.new is not None else self.old
        assert found is not None
        return found

    @property
    def name(self) -> str:
        """The object's name; empty where the server has yet to make one up."""
        return str(self.object["metadata"].get("name", ""))

    @property
    def namespace(self) -> str:
        """The object's namespace; a namespace is in itself, other objects of the cluster are in none."""
        return self.name if self.resource.key == NAMESPACES else str(self.object["metadata"].get("namespace", ""))

    @cached_property
    def request(self) -> Manifest:
        """The AdmissionRequest, without the objects: what expressions know as `request`."""
        kind = {"group": self.resource.group, "version": self.resource.version, "kind": self.resource.kind}
        place = {"group": self.resource.group, "version": self.resource.version, "resource": self.resource.plural}
        below = {"subResource": self.subresource, "requestSubResource": self.subresource} if self.subresource else {}
        return {
            "uid": str(uuid.uuid4()), "kind": kind, "resource": place, "requestKind": kind, "requestResource": place, **below,
            "name": self.name, **({"namespace": self.namespace} if self.namespace else {}), "operation": self.operation,
            "userInfo": _user_info(self.user), "dryRun": self.dry_run,
        }  # fmt: skip

    def is_meant_by(self, rules: Iterable[Mapping[str, Any]]) -> bool:
        """Whether one of some rules, of a webhook or a policy, names this."""
        return any(self._is_named(rule) for rule in rules)

    def is_selected_by(self, selecting: Mapping[str, Any], store: Store) -> bool:
        """Whether `namespaceSelector` and `objectSelector`, of a webhook or a policy, choose this."""
        objects = [each for each in (self.new, self.old) if each is not None]
        wanted = selectors.parse_object(selecting.get("objectSelector") or {})
        if not any(selectors.holds(wanted, selectors.labels_of(each)) for each in objects):
            return False
        wanted = selectors.parse_object(selecting.get("namespaceSelector") or {})
        if not self.namespace or not wanted:
            return True
        record = store.get(NAMESPACES, "", self.namespace)
        return selectors.holds(wanted, selectors.labels_of(record.object if record else self.object))

    def _is_named(self, rule: Mapping[str, Any]) -> bool:
        scope = "Namespaced" if self.resource.namespaced else "Cluster"
        names = rule.get("resourceNames")
        return (
            _holds(rule["operations"], self.operation)
            and _holds(rule["apiGroups"], self.resource.group)
            and _holds(rule["apiVersions"], self.resource.version)
            and any(self._is_resource(each) for each in rule["resources"])
            and rule.get("scope", _ANY) in (_ANY, scope)
            and (not names or self.name in names)
        )

    def _is_resource(self, pattern: str) -> bool:
        """`pods`, `pods/status`, `pods/*`, `*/status`, `*` (no subresources) or `*/*`."""
        resource, _, subresource = pattern.partition("/")
        return resource in (_ANY, self.resource.plural) and (
            subresource == self.subresource or (subresource == _ANY and "/" in pattern)
        )


def _holds(words: Iterable[str], word: str) -> bool:
    return any(each in (_ANY, word) for each in words)


def _user_info(user: User) -> Manifest:
    info: Manifest = {"username": user.name, "groups": list(user.groups)}
    if user.uid:
        info["uid"] = user.uid
    if user.extra:
        info["extra"] = {key: list(values) for key, values in user.extra.items()}
    return info
