"""Role-based access control, evaluated as a real server does: who may do what, and the text of a refusal.

The node authorizer of a real cluster is not imitated: the group `system:nodes` has the role `system:node` (see `roles`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NoReturn, TypeAlias

from gpushare.domain.manifests import Manifest
from gpushare.sandbox.apiserver import statuses
from gpushare.sandbox.apiserver.access.authentication import MASTERS, account_of
from gpushare.sandbox.apiserver.objects import selectors
from gpushare.sandbox.apiserver.requests import Target, User
from gpushare.sandbox.apiserver.storage import Event, Store

GROUP = "rbac.authorization.k8s.io"
ROLES, CLUSTER_ROLES = (GROUP, "roles"), (GROUP, "clusterroles")
ROLE_BINDINGS, CLUSTER_ROLE_BINDINGS = (GROUP, "rolebindings"), (GROUP, "clusterrolebindings")
_ROLE_KEYS = {"Role": ROLES, "ClusterRole": CLUSTER_ROLES}

Rule: TypeAlias = Mapping[str, Any]
"""A PolicyRule as JSON."""


@dataclass(frozen=True, slots=True)
class Decision:
    """Whether a request is allowed, and why or why not."""

    allowed: bool
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Grant:
    """What one binding gives to one subject."""

    namespace: str
    """Where it holds; empty for the whole cluster."""
    rules: tuple[Rule, ...]
    reason: str
    """Which binding, role and subject, in a real server's words."""
    problem: str = ""
    """The role that it names is not there."""


@dataclass(slots=True)
class Authorizer:
    """Evaluates the roles and bindings in the store."""

    store: Store
    _grants: dict[tuple[str, str], list[Grant]] = field(default_factory=dict)
    _stale: bool = True

    def __post_init__(self) -> None:
        self.store.listeners.append(self._see)

    def check(self, user: User, target: Target) -> None:
        """Raises `ApiError` 403 with a real server's text when the user may not."""
        decision = self.decide(user, target)
        if not decision.allowed:
            self.refuse(user, target, decision.reason)

    @staticmethod
    def refuse(user: User, target: Target, reason: str = "") -> NoReturn:
        """Raises the `ApiError` 403 of a request that is not allowed."""
        why = _refusal(user, target) + (f": {reason}" if reason else "")
        raise statuses.forbidden(target if target.is_resource else None, target.name, why)

    def decide(self, user: User, target: Target) -> Decision:
        """Whether the user may. `reason` is what access reviews show."""
        if MASTERS in user.groups:
            return Decision(allowed=True)
        problems = []
        for grant in self.grants_of(user, target.namespace):
            if any(allows(rule, target) for rule in grant.rules):
                return Decision(allowed=True, reason=grant.reason)
            if grant.problem and grant.problem not in problems:
                problems.append(grant.problem)
        return Decision(allowed=False, reason=f"RBAC: {statuses.listed(problems)}" if problems else "")

    def rules_of(self, user: User, namespace: str) -> list[Rule]:
        """All that a user may do in a namespace (cluster-wide rules included)."""
        if MASTERS in user.groups:
            everything = {"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]}
            return [everything, {"verbs": ["*"], "nonResourceURLs": ["*"]}]
        return [rule for grant in self.grants_of(user, namespace) for rule in grant.rules]

    def grants_of(self, user: User, namespace: str) -> Iterator[Grant]:
        """The bindings that concern a user in a namespace."""
        if self._stale:
            self._read_bindings()
        for subject in _subjects(user):
            for grant in self._grants.get(subject, ()):
                if not grant.namespace or grant.namespace == namespace:
                    yield grant

    def role_rules(self, reference: Mapping[str, str], namespace: str) -> tuple[Rule, ...] | None:
        """The rules of the role that a binding refers to; None where there is no such role."""
        place = namespace if reference["kind"] == "Role" else ""
        record = self.store.get(_ROLE_KEYS[reference["kind"]], place, reference["name"])
        return None if record is None else tuple(self._rules(record.object))

    def _rules(self, role: Manifest) -> Iterable[Rule]:
        aggregation = role.get("aggregationRule")
        if not aggregation:
            return role.get("rules") or []
        # A controller of real clusters writes these into the role; here they are looked up when asked for.
        wanted = [selectors.parse_object(each) for each in aggregation.get("clusterRoleSelectors", [])]
        parts = [
            record.object for record in self.store.objects(CLUSTER_ROLES)
            if any(selectors.holds(need, record.object["metadata"].get("labels") or {}) for need in wanted)
        ]  # fmt: skip
        return [rule for part in parts if not part.get("aggregationRule") for rule in part.get("rules") or []]

    def _see(self, event: Event) -> None:
        if event.key[0] == GROUP:
            self._stale = True

    def _read_bindings(self) -> None:
        self._grants.clear()
        for key in (CLUSTER_ROLE_BINDINGS, ROLE_BINDINGS):
            for record in self.store.objects(key):
                self._read_binding(record.object)
        self._stale = False

    def _read_binding(self, binding: Manifest) -> None:
        reference, metadata = binding["roleRef"], binding["metadata"]
        namespace = metadata.get("namespace", "")
        rules = self.role_rules(reference, namespace)
        problem = "" if rules is not None else f'{reference["kind"].lower()}.{GROUP} "{reference["name"]}" not found'
        place = f"{metadata['name']}/{namespace}" if namespace else metadata["name"]
        for subject in binding.get("subjects") or []:
            who = subject["name"]
            if subject["kind"] == "ServiceAccount":
                who = f"{subject['name']}/{subject.get('namespace') or namespace}"
            reason = (
                f'RBAC: allowed by {binding["kind"]} "{place}" of {reference["kind"]} "{reference["name"]}"'
                f' to {subject["kind"]} "{who}"'
            )
            grant = Grant(namespace, rules or (), reason, problem)
            self._grants.setdefault((subject["kind"], who), []).append(grant)


def allows(rule: Rule, target: Target) -> bool:
    """Whether one rule allows a request."""
    if not _has(rule.get("verbs"), target.verb):
        return False
    if not target.is_resource:
        return any(_url_matches(pattern, target.path) for pattern in rule.get("nonResourceURLs") or [])
    names = rule.get("resourceNames") or []
    return (
        _has(rule.get("apiGroups"), target.group)
        and _has_resource(rule.get("resources") or [], target)
        and (not names or target.name in names)
    )


def _has(values: Sequence[str] | None, value: str) -> bool:
    return values is not None and ("*" in values or value in values)


def _has_resource(resources: Sequence[str], target: Target) -> bool:
    if "*" in resources or target.qualified_resource in resources:
        return True
    return bool(target.subresource) and f"*/{target.subresource}" in resources


def _url_matches(pattern: str, path: str) -> bool:
    return pattern in ("*", path) or (pattern.endswith("*") and path.startswith(pattern[:-1]))


def _subjects(user: User) -> Iterator[tuple[str, str]]:
    yield "User", user.name
    account = account_of(user.name)
    if account:
        yield "ServiceAccount", f"{account[1]}/{account[0]}"
    for group in user.groups:
        yield "Group", group


def _refusal(user: User, target: Target) -> str:
    if not target.is_resource:
        return f'User "{user.name}" cannot {target.verb} path "{target.path}"'
    place = f'in the namespace "{target.namespace}"' if target.namespace else "at the cluster scope"
    what = f'resource "{target.qualified_resource}" in API group "{target.group}"'
    return f'User "{user.name}" cannot {target.verb} {what} {place}'
