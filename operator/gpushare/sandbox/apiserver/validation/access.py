"""Rules of roles and bindings."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from gpushare.domain.manifests import Manifest
from gpushare.sandbox.apiserver import field_errors
from gpushare.sandbox.apiserver.objects import syntax
from gpushare.sandbox.apiserver.statuses import Cause

_GROUP: Final = "rbac.authorization.k8s.io"
_SUBJECT_GROUPS: Final = {"ServiceAccount": "", "User": _GROUP, "Group": _GROUP}


def check_role(obj: Manifest, *, namespaced: bool) -> Iterator[Cause]:
    """A Role or a ClusterRole."""
    for number, rule in enumerate(obj.get("rules") or ()):
        yield from _check_rule(rule, field_errors.at("rules", number), namespaced=namespaced)


def check_binding(obj: Manifest, *, kinds: tuple[str, ...]) -> Iterator[Cause]:
    """A binding to a role of one of some kinds."""
    role = obj.get("roleRef") or {}
    if role.get("apiGroup") != _GROUP:
        yield field_errors.unsupported("roleRef.apiGroup", role.get("apiGroup", ""), (_GROUP,))
    if role.get("kind") not in kinds:
        yield field_errors.unsupported("roleRef.kind", role.get("kind", ""), kinds)
    if not role.get("name"):
        yield field_errors.required("roleRef.name")
    for number, subject in enumerate(obj.get("subjects") or ()):
        yield from _check_subject(subject, field_errors.at("subjects", number))


def check_binding_update(obj: Manifest, old: Manifest) -> Iterator[Cause]:
    """A binding keeps its role: what a subject was once granted would change under its name."""
    if obj.get("roleRef") != old.get("roleRef"):
        yield field_errors.invalid("roleRef", obj.get("roleRef"), "cannot change roleRef")


def _check_rule(rule: Mapping[str, Any], field: str, *, namespaced: bool) -> Iterator[Cause]:
    if not rule.get("verbs"):
        yield field_errors.required(f"{field}.verbs", "verbs must contain at least one value")
    if urls := rule.get("nonResourceURLs"):
        if namespaced:
            why = "namespaced rules cannot apply to non-resource URLs"
            yield field_errors.invalid(f"{field}.nonResourceURLs", urls, why)
        if rule.get("apiGroups") or rule.get("resources") or rule.get("resourceNames"):
            why = "rules cannot apply to both regular resources and non-resource URLs"
            yield field_errors.invalid(f"{field}.nonResourceURLs", urls, why)
        return
    if not rule.get("apiGroups"):
        yield field_errors.required(f"{field}.apiGroups", "resource rules must supply at least one api group")
    if not rule.get("resources"):
        yield field_errors.required(f"{field}.resources", "resource rules must supply at least one resource")


def _check_subject(subject: Mapping[str, Any], field: str) -> Iterator[Cause]:
    kind, name = subject.get("kind", ""), subject.get("name", "")
    if not name:
        yield field_errors.required(f"{field}.name")
    if kind not in _SUBJECT_GROUPS:
        yield field_errors.unsupported(f"{field}.kind", kind, tuple(_SUBJECT_GROUPS))
        return
    if (group := subject.get("apiGroup", "")) != _SUBJECT_GROUPS[kind]:
        yield field_errors.unsupported(f"{field}.apiGroup", group, (_SUBJECT_GROUPS[kind],))
    if kind == "ServiceAccount":
        yield from field_errors.all_invalid(f"{field}.name", name, syntax.subdomain(name) if name else ())
        if not subject.get("namespace"):
            yield field_errors.required(f"{field}.namespace")
