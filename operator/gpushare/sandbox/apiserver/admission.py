"""Admission: rules that look beyond the object, at who writes it. Called by `writing` for every create and update."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import product

from gpushare.domain.manifests import Manifest
from gpushare.sandbox.apiserver import statuses
from gpushare.sandbox.apiserver.authorization import GROUP, ROLE_BINDINGS, ROLES, Authorizer, Rule, allows
from gpushare.sandbox.apiserver.requests import Target, User
from gpushare.sandbox.apiserver.resources import CUSTOM_RESOURCE_DEFINITIONS, Resource

_NOT_IMITATED = "admissionregistration.k8s.io"


@dataclass(slots=True)
class Admission:
    """Refuses privilege escalation; says once for each kind what this server does not imitate."""

    authorizer: Authorizer
    log: logging.Logger
    _told: set[str] = field(default_factory=set)

    def check(self, resource: Resource, new: Manifest, old: Manifest | None, user: User, warnings: list[str]) -> None:
        """Raises `ApiError` 403 when the user gives more rights than it has."""
        if resource.group == GROUP:
            self._check_rights(resource, new, old, user)
        elif resource.group == _NOT_IMITATED:
            self._tell(f"{resource.kind} is stored but has no effect in this server", warnings)
        elif resource.key == CUSTOM_RESOURCE_DEFINITIONS and "x-kubernetes-validations" in json.dumps(new["spec"]):
            self._tell("x-kubernetes-validations (CEL) are not evaluated by this server", warnings)

    def _tell(self, text: str, warnings: list[str]) -> None:
        if text not in self._told:
            self._told.add(text)
            warnings.append(text)
            self.log.warning("not imitated", extra={"what": text})

    def _check_rights(self, resource: Resource, new: Manifest, old: Manifest | None, user: User) -> None:
        namespace = new["metadata"].get("namespace", "")
        name = new["metadata"]["name"]
        if resource.key in (ROLES, (GROUP, "clusterroles")):
            if old is not None and old.get("rules") == new.get("rules"):
                return
            rules, verb, role = new.get("rules") or [], "escalate", (resource.plural, name)
        else:
            reference = new["roleRef"]
            rules = self.authorizer.role_rules(reference, namespace) or ()
            verb, role = "bind", (f"{reference['kind'].lower()}s", reference["name"])
        place = namespace if resource.key in (ROLES, ROLE_BINDINGS) else ""
        target = Target(verb, "", is_resource=True, group=GROUP, resource=role[0], name=role[1], namespace=place)
        if self.authorizer.decide(user, target).allowed:
            return
        missing = sorted(set(_missing(rules, self.authorizer.rules_of(user, place))))
        if missing:
            groups = " ".join(json.dumps(group) for group in user.groups)
            why = (
                f'user "{user.name}" (groups=[{groups}]) is attempting to grant RBAC permissions not currently held:\n'
                + "\n".join(missing)
            )
            raise statuses.forbidden(resource, name, why)


def _missing(wanted: Iterable[Rule], held: Iterable[Rule]) -> Iterator[str]:
    """The parts of some rules that others do not cover, in a real server's words."""
    held = list(held)
    for rule in wanted:
        verbs: dict[str, list[str]] = {}
        for verb, target, text in _parts(rule):
            if not any(allows(each, target) for each in held):
                verbs.setdefault(text, []).append(verb)
        for text, names in verbs.items():
            yield f"{{{text}, Verbs:{_go_list(names)}}}"


def _parts(rule: Rule) -> Iterator[tuple[str, Target, str]]:
    for verb, url in product(rule.get("verbs") or (), rule.get("nonResourceURLs") or ()):
        yield verb, Target(verb, url), f"NonResourceURLs:{_go_list([url])}"
    resources = product(rule.get("apiGroups") or (), rule.get("resources") or (), rule.get("resourceNames") or ("",))
    for group, resource, name in resources:
        plural, _, subresource = resource.partition("/")
        names = f", ResourceNames:{_go_list([name])}" if name else ""
        text = f"APIGroups:{_go_list([group])}, Resources:{_go_list([resource])}{names}"
        for verb in rule.get("verbs") or ():
            target = Target(
                verb, "", is_resource=True, group=group, resource=plural, subresource=subresource, name=name
            )
            yield verb, target, text


def _go_list(values: Iterable[str]) -> str:
    return f"[{' '.join(json.dumps(value) for value in values)}]"
