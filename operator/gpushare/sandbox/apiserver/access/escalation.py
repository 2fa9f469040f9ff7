"""Nobody gives away rights that they do not have: the check on roles and bindings. Called by `admission`."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from itertools import product

from gpushare.domain.manifests import Manifest
from gpushare.sandbox.apiserver import statuses
from gpushare.sandbox.apiserver.access.authorization import (
    CLUSTER_ROLES,
    GROUP,
    ROLE_BINDINGS,
    ROLES,
    Authorizer,
    Rule,
    allows,
)
from gpushare.sandbox.apiserver.requests import Target, User
from gpushare.sandbox.apiserver.resources import Resource


def check(authorizer: Authorizer, user: User, resource: Resource, new: Manifest, old: Manifest | None) -> None:
    """Raises `ApiError` 403 when a role or a binding would give what its author has not."""
    metadata = new["metadata"]
    namespace = metadata.get("namespace", "")
    if resource.key in (ROLES, CLUSTER_ROLES):
        if old is not None and old.get("rules") == new.get("rules"):
            return
        rules, verb, role = new.get("rules") or (), "escalate", (resource.plural, metadata["name"])
    else:
        reference = new["roleRef"]
        rules = authorizer.role_rules(reference, namespace) or ()
        verb, role = "bind", (f"{reference['kind'].lower()}s", reference["name"])
    place = namespace if resource.key in (ROLES, ROLE_BINDINGS) else ""
    target = Target(verb, "", is_resource=True, group=GROUP, resource=role[0], name=role[1], namespace=place)
    if authorizer.decide(user, target).allowed:
        return
    missing = sorted(set(_missing(rules, authorizer.rules_of(user, place))))
    if missing:
        groups = " ".join(json.dumps(group) for group in user.groups)
        why = f'user "{user.name}" (groups=[{groups}]) is attempting to grant RBAC permissions not currently held:\n'
        raise statuses.forbidden(resource, metadata["name"], why + "\n".join(missing))


def _missing(wanted: Iterable[Rule], held: Iterable[Rule]) -> Iterator[str]:
    """The parts of some rules that others do not cover, in a real server's words."""
    held = list(held)
    for rule in wanted:
        verbs: dict[str, list[str]] = {}
        for target, text in _parts(rule):
            if not any(allows(each, target) for each in held):
                verbs.setdefault(text, []).append(target.verb)
        for text, names in verbs.items():
            yield f"{{{text}, Verbs:{_go_list(names)}}}"


def _parts(rule: Rule) -> Iterator[tuple[Target, str]]:
    """A rule cut into requests that each allow one thing."""
    verbs = rule.get("verbs") or ()
    for verb, url in product(verbs, rule.get("nonResourceURLs") or ()):
        yield Target(verb, url), f"NonResourceURLs:{_go_list([url])}"
    places = product(rule.get("apiGroups") or (), rule.get("resources") or (), rule.get("resourceNames") or ("",))
    for (group, resource, name), verb in product(places, verbs):
        plural, _, subresource = resource.partition("/")
        names = f", ResourceNames:{_go_list([name])}" if name else ""
        text = f"APIGroups:{_go_list([group])}, Resources:{_go_list([resource])}{names}"
        target = Target(verb, "", is_resource=True, group=group, resource=plural, subresource=subresource, name=name)
        yield target, text


def _go_list(values: Iterable[str]) -> str:
    return f"[{' '.join(json.dumps(value) for value in values)}]"
