"""Admission: what depends on more than the object itself. Called by `writing` for every create and update.

MutatingAdmissionPolicies and the CEL rules of custom resources are not imitated; whoever writes one is told. Webhooks and
ValidatingAdmissionPolicies are asked later.
"""

from __future__ import annotations

import logging
import random
from dataclasses import dataclass, field

from gpushare.domain.manifests import Manifest
from gpushare.sandbox.apiserver import statuses
from gpushare.sandbox.apiserver.access import escalation
from gpushare.sandbox.apiserver.access.authorization import GROUP, Authorizer
from gpushare.sandbox.apiserver.handling import pod_admission
from gpushare.sandbox.apiserver.objects.schemas import Schema
from gpushare.sandbox.apiserver.requests import User
from gpushare.sandbox.apiserver.resources import CUSTOM_RESOURCE_DEFINITIONS, PODS, Key, Resource
from gpushare.sandbox.apiserver.storage import Store
from gpushare.sandbox.apiserver.validation import custom

SUFFIX_LETTERS = "bcdfghjklmnpqrstvwxz2456789"
"""No vowels and nothing that looks like one, as in real generated names."""
_EXTENSIONS = "admissionregistration.k8s.io"
_PRIORITY_CLASSES: Key = ("scheduling.k8s.io", "priorityclasses")
_RUNTIME_CLASSES: Key = ("node.k8s.io", "runtimeclasses")
_SERVICE_ACCOUNTS: Key = ("", "serviceaccounts")


def random_suffix() -> str:
    """Five letters that make a generated name unique."""
    return "".join(random.choices(SUFFIX_LETTERS, k=5))  # noqa: S311 - a name, no secret


@dataclass(slots=True)
class Admission:
    """Completes new pods, refuses privilege escalation, says once for each kind what this server does not imitate."""

    store: Store
    authorizer: Authorizer
    log: logging.Logger
    _told: set[str] = field(default_factory=set)

    def admit(self, resource: Resource, new: Manifest, old: Manifest | None, user: User, warnings: list[str]) -> None:
        """Completes an object in place. Raises `ApiError` 403 for what may not be."""
        if resource.key == PODS and old is None:
            self._admit_pod(resource, new)
        elif resource.group == GROUP:
            escalation.check(self.authorizer, user, resource, new, old)
        elif resource.group == _EXTENSIONS and resource.kind.startswith("MutatingAdmissionPolicy"):
            self._tell(f"{resource.kind} is stored, but has no effect in this server", warnings)
        elif resource.key == CUSTOM_RESOURCE_DEFINITIONS and _has_rules(new):
            self._tell("x-kubernetes-validations are stored, but not evaluated by this server", warnings)

    def _admit_pod(self, resource: Resource, pod: Manifest) -> None:
        spec, metadata = pod["spec"], pod["metadata"]
        account = spec.get("serviceAccountName") or "default"
        # `default` comes a moment after its namespace, so nobody is turned away for its sake.
        if account != "default" and self.store.get(_SERVICE_ACCOUNTS, metadata["namespace"], account) is None:
            place = f"{metadata['namespace']}/{account}"
            why = f'error looking up service account {place}: serviceaccount "{account}" not found'
            raise statuses.forbidden(resource, metadata["name"], why)
        runtime = spec.get("runtimeClassName")
        if runtime and self.store.get(_RUNTIME_CLASSES, "", runtime) is None:
            why = f'pod rejected: RuntimeClass "{runtime}" not found'
            raise statuses.forbidden(resource, metadata["name"], why)
        found = self._priority_class(resource, pod)
        priority = {"priority": found["value"], "preemption": found["preemptionPolicy"]} if found else {}
        if found:
            spec["priorityClassName"] = found["metadata"]["name"]
        pod_admission.admit(pod, suffix=random_suffix(), **priority)

    def _priority_class(self, resource: Resource, pod: Manifest) -> Manifest | None:
        name = pod["spec"].get("priorityClassName")
        if not name:
            every = (record.object for record in self.store.objects(_PRIORITY_CLASSES))
            return next((each for each in every if each.get("globalDefault")), None)
        record = self.store.get(_PRIORITY_CLASSES, "", name)
        if record is None:
            raise statuses.forbidden(resource, pod["metadata"]["name"], f"no PriorityClass with name {name} was found")
        return record.object

    def _tell(self, text: str, warnings: list[str]) -> None:
        if text not in self._told:
            self._told.add(text)
            warnings.append(text)
            self.log.warning("not imitated", extra={"what": text})


def _has_rules(definition: Manifest) -> bool:
    versions = definition["spec"].get("versions") or ()
    return any(custom.has_rules(Schema(each.get("schema", {}).get("openAPIV3Schema", {}))) for each in versions)
