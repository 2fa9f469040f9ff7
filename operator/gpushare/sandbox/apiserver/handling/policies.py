"""ValidatingAdmissionPolicies: they refuse, or warn of, what is about to be written or deleted.

Called by `writing` once an object is complete and valid, and before a delete. Whether a policy can be evaluated here at all is
checked when it is written (`validation.policies`), so that none is stored that would not be heeded.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from gpushare.domain.manifests import Manifest
from gpushare.sandbox.apiserver import statuses
from gpushare.sandbox.apiserver.handling.attempts import Attempt
from gpushare.sandbox.apiserver.resources import NAMESPACES, Key
from gpushare.sandbox.apiserver.storage import Store
from gpushare.sandbox.apiserver.validation import expressions
from gpushare.sandbox.apiserver.validation.expressions import ExpressionError

GROUP: Final = "admissionregistration.k8s.io"
POLICIES: Final[Key] = (GROUP, "validatingadmissionpolicies")
BINDINGS: Final[Key] = (GROUP, "validatingadmissionpolicybindings")
_CODES: Final[Mapping[str, int]] = {"Unauthorized": 401, "Forbidden": 403, "RequestEntityTooLarge": 413, "Invalid": 422}
"""By the `reason` of a validation."""


@dataclass(slots=True)
class _Judging:
    """One policy that looks at one attempt."""

    spec: Mapping[str, Any]
    variables: dict[str, object]

    def find_problems(self) -> Iterator[tuple[str, str]]:
        """What is wrong, each with its reason. Nothing where the policy's conditions leave this alone."""
        try:
            if not self._is_concerned():
                return
        except ExpressionError as error:
            yield from self._failed(error)
            return
        self._name_values()
        for validation in self.spec.get("validations") or ():
            yield from self._problems_of(validation)

    def _is_concerned(self) -> bool:
        for condition in self.spec.get("matchConditions") or ():
            if not expressions.evaluate(condition["expression"], self.variables):
                return False
        return True

    def _name_values(self) -> None:
        named: dict[str, object] = {}
        self.variables["variables"] = named
        for variable in self.spec.get("variables") or ():
            # One that fails matters only where it is used, which then fails for want of it.
            with contextlib.suppress(ExpressionError):
                named[variable["name"]] = expressions.evaluate(variable["expression"], self.variables)

    def _problems_of(self, validation: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
        expression = validation["expression"].strip()
        try:
            if expressions.evaluate(expression, self.variables) is not True:
                yield self._message_of(validation), validation.get("reason", "Invalid")
        except ExpressionError as error:
            yield from self._failed(f"expression '{expression}' resulted in error: {error}")

    def _message_of(self, validation: Mapping[str, Any]) -> str:
        text: object = None
        if "messageExpression" in validation:
            with contextlib.suppress(ExpressionError):  # the fixed text does then, as on a real server
                text = expressions.evaluate(validation["messageExpression"], self.variables)
        if isinstance(text, str) and text.strip():
            return text.strip()
        return str(validation.get("message") or f"failed expression: {validation['expression'].strip()}")

    def _failed(self, why: object) -> Iterator[tuple[str, str]]:
        if self.spec.get("failurePolicy", "Fail") == "Fail":
            yield str(why), "Invalid"


@dataclass(frozen=True, slots=True)
class Policies:
    """Asks every policy that is bound."""

    store: Store

    def check(self, attempt: Attempt, warnings: list[str]) -> None:
        """Adds warnings. Raises `ApiError` for what a policy refuses."""
        if attempt.resource.group == GROUP:
            return  # or a policy could keep itself from being taken away
        for record in self.store.objects(BINDINGS):
            binding = record.object["spec"]
            policy = self.store.get(POLICIES, "", binding["policyName"])
            if policy is None or not self._is_matched(attempt, policy.object["spec"], binding):
                continue
            actions = binding["validationActions"]
            judging = _Judging(policy.object["spec"], self._variables(attempt))
            for message, reason in judging.find_problems():
                name = f"ValidatingAdmissionPolicy '{policy.name}' with binding '{record.name}'"
                if "Warn" in actions:
                    warnings.append(f"Validation failed for {name}: {message}")
                if "Deny" in actions:
                    raise _refusal(attempt, f"{name} denied request: {message}", reason)

    def _is_matched(self, attempt: Attempt, policy: Mapping[str, Any], binding: Mapping[str, Any]) -> bool:
        return all(
            attempt.is_meant_by(each.get("resourceRules") or [_EVERYTHING])
            and not attempt.is_meant_by(each.get("excludeResourceRules") or ())
            and attempt.is_selected_by(each, self.store)
            for each in (policy["matchConstraints"], binding.get("matchResources") or {})
        )

    def _variables(self, attempt: Attempt) -> dict[str, object]:
        namespace = self.store.get(NAMESPACES, "", attempt.namespace) if attempt.namespace else None
        return {
            "object": attempt.new,
            "oldObject": attempt.old,
            "request": attempt.request,
            "namespaceObject": namespace.object if namespace else None,
        }


_EVERYTHING: Final[Mapping[str, Any]] = {
    "operations": ["*"],
    "apiGroups": ["*"],
    "apiVersions": ["*"],
    "resources": ["*/*"],
}


def _refusal(attempt: Attempt, message: str, reason: str) -> statuses.ApiError:
    error = statuses.forbidden(attempt.resource, attempt.name, message)
    details: Manifest = {**(error.details or {}), "causes": [{"message": message}]}
    return statuses.ApiError(_CODES[reason], reason, error.message, details=details)
