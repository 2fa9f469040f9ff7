"""Rules of ValidatingAdmissionPolicies: that their expressions compile, and ask for nothing that this server does not do."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from gpushare.domain.manifests import Manifest
from gpushare.sandbox.apiserver import field_errors
from gpushare.sandbox.apiserver.statuses import Cause
from gpushare.sandbox.apiserver.validation import expressions
from gpushare.sandbox.apiserver.validation.expressions import ExpressionError

_ACTIONS: Final = ("Audit", "Deny", "Warn")
_FAILURE_POLICIES: Final = ("Fail", "Ignore")
_REASONS: Final = ("Forbidden", "Invalid", "RequestEntityTooLarge", "Unauthorized")
_REQUEST: Final = ("namespaceObject", "object", "oldObject", "request")
NAMES: Final = (*_REQUEST, "variables")
"""What expressions may speak of. A real server knows `params` and `authorizer` besides."""


def check_policy(obj: Manifest) -> Iterator[Cause]:
    """A ValidatingAdmissionPolicy."""
    spec = obj.get("spec") or {}
    if spec.get("paramKind"):
        yield field_errors.forbidden("spec.paramKind", "this server does not read parameters of policies")
    if not (spec.get("matchConstraints") or {}).get("resourceRules"):
        yield field_errors.required("spec.matchConstraints.resourceRules")
    if spec.get("failurePolicy") not in _FAILURE_POLICIES:
        yield field_errors.unsupported("spec.failurePolicy", spec.get("failurePolicy"), _FAILURE_POLICIES)
    if not spec.get("validations") and not spec.get("auditAnnotations"):
        why = "validations or auditAnnotations must be non-empty if specified"
        yield field_errors.required("spec.validations", why)
    for at, validation in enumerate(spec.get("validations") or ()):
        yield from _check_validation(field_errors.at("spec", "validations", at), validation)
    yield from check_conditions("spec", spec)
    for at, variable in enumerate(spec.get("variables") or ()):
        yield from _check_expression(field_errors.at("spec", "variables", at), variable, "expression", NAMES)


def check_binding(obj: Manifest) -> Iterator[Cause]:
    """A ValidatingAdmissionPolicyBinding."""
    spec = obj.get("spec") or {}
    if not spec.get("policyName"):
        yield field_errors.required("spec.policyName")
    if spec.get("paramRef"):
        yield field_errors.forbidden("spec.paramRef", "this server does not read parameters of policies")
    actions = spec.get("validationActions") or []
    if not actions:
        yield field_errors.required("spec.validationActions")
    for at, action in enumerate(actions):
        if action not in _ACTIONS:
            yield field_errors.unsupported(field_errors.at("spec", "validationActions", at), action, _ACTIONS)
    if "Deny" in actions and "Warn" in actions:
        yield field_errors.invalid("spec.validationActions", actions, "must not contain both Deny and Warn")


def check_conditions(path: str, owner: Mapping[str, Any]) -> Iterator[Cause]:
    """The `matchConditions` of a policy, or of a webhook."""
    for at, condition in enumerate(owner.get("matchConditions") or ()):
        place = field_errors.at(path, "matchConditions", at)
        if not condition.get("name"):
            yield field_errors.required(f"{place}.name")
        yield from _check_expression(place, condition, "expression", _REQUEST)


def _check_validation(path: str, validation: Mapping[str, Any]) -> Iterator[Cause]:
    if validation.get("reason", "Invalid") not in _REASONS:
        yield field_errors.unsupported(f"{path}.reason", validation["reason"], _REASONS)
    yield from _check_expression(path, validation, "expression", NAMES)
    if "messageExpression" in validation:
        yield from _check_expression(path, validation, "messageExpression", NAMES)


def _check_expression(path: str, owner: Mapping[str, Any], name: str, names: tuple[str, ...]) -> Iterator[Cause]:
    expression = (owner.get(name) or "").strip()
    if not expression:
        yield field_errors.required(f"{path}.{name}")
        return
    try:
        expressions.check(expression, names)
    except ExpressionError as error:
        yield field_errors.invalid(f"{path}.{name}", owner[name], f"compilation failed: {error}")
