"""Which rights the controller needs and lacks, so that people read it on the policy. Called by the reconciler at each resync."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from gpushare import names
from gpushare.domain.manifests import Manifest
from gpushare.plan import wording

Rule = Mapping[str, Any]
"""One of `rules` of a role, or of `resourceRules` of a SelfSubjectRulesReview."""

_FOR_OPENSHIFT: Final = frozenset({"clusterpolicies/finalizers", "securitycontextconstraints"})
"""What only admission plugins ask for that are off elsewhere."""
_TO_SPEAK: Final = frozenset({"clusterpolicies", "clusterpolicies/status", "leases"})
"""Without these no policy is seen or written."""


@dataclass(frozen=True, slots=True, order=True)
class Right:
    """One verb on one resource."""

    group: str
    resource: str
    """Plural, with the subresource where it is about one: `clusterpolicies/status`."""
    verb: str

    @property
    def object(self) -> str:
        """What it is about, for people: `nodes`, `clusterpolicies.nvidia.com/status`."""
        plural, slash, subresource = self.resource.partition("/")
        return f"{plural}.{self.group}{slash}{subresource}" if self.group else self.resource


def rights_of(role: Manifest) -> frozenset[Right]:
    """What a role grants that we hold to be needed."""
    return frozenset(
        Right(group, resource, verb)
        for rule in role.get("rules", ())
        if not rule.get("resourceNames")  # about single objects, of which the server tells nothing in general
        for group in rule["apiGroups"]
        for resource in rule["resources"]
        if resource not in _FOR_OPENSHIFT
        for verb in rule["verbs"]
    )


def find_missing(needed: Iterable[Right], granted: Iterable[Rule]) -> tuple[Right, ...]:
    """What is needed and not granted, in order. A rule that is about single objects by name grants nothing here."""
    rules = [rule for rule in granted if not rule.get("resourceNames")]
    return tuple(sorted(right for right in needed if not any(_grants(rule, right) for rule in rules)))


def is_unspeakable(right: Right) -> bool:
    """Whether, without it, no policy can tell what is missing."""
    return right.resource in _TO_SPEAK


def describe(missing: Iterable[Right], namespace: str) -> str:
    """For people: who may not do what, and what to do about it. Empty where nothing is missing."""
    verbs: dict[str, list[str]] = {}
    for right in missing:
        verbs.setdefault(right.object, []).append(right.verb)
    if not verbs:
        return ""
    deeds = wording.listed([f"{' and '.join(found)} {resource}" for resource, found in verbs.items()])
    account = f"ServiceAccount {namespace}/{names.CONTROLLER}"
    return f"{account} may not {deeds}; install the ClusterRole and the Role {names.CONTROLLER} of the chart again"


def _grants(rule: Rule, right: Right) -> bool:
    subresource = right.resource.partition("/")[2]
    wanted = {"*", right.resource, *([f"*/{subresource}"] if subresource else [])}
    return (
        not wanted.isdisjoint(rule.get("resources") or ())
        and not {"*", right.group}.isdisjoint(rule.get("apiGroups") or ())
        and not {"*", right.verb}.isdisjoint(rule.get("verbs") or ())
    )
