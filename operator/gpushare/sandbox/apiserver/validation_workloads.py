"""Rules of DaemonSets, Deployments, ReplicaSets, StatefulSets and Jobs. Called by `validation`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from gpushare.domain.manifests import Manifest
from gpushare.sandbox.apiserver import field_errors, name_rules, validation_pods
from gpushare.sandbox.apiserver.statuses import Cause

_IMMUTABLE: Final = "field is immutable"
_MISMATCH: Final = "`selector` does not match template `labels`"
_OPERATORS: Final = ("DoesNotExist", "Exists", "In", "NotIn")


def check_daemon_set(obj: Manifest) -> Iterator[Cause]:
    """A DaemonSet."""
    spec = obj.get("spec") or {}
    selector = spec.get("selector")
    yield from _check_selector(selector, "spec.selector")
    yield from _check_match(spec)
    if selector is not None and not _requirements(selector):
        yield field_errors.invalid("spec.selector", selector, "empty selector is invalid for daemonset")
    yield from _check_running_template(spec)


def check_deployment(obj: Manifest) -> Iterator[Cause]:
    """A Deployment."""
    yield from _check_replicated(obj, "deployment")


def check_replica_set(obj: Manifest) -> Iterator[Cause]:
    """A ReplicaSet."""
    yield from _check_replicated(obj, "deployment")


def check_stateful_set(obj: Manifest) -> Iterator[Cause]:
    """A StatefulSet."""
    yield from _check_replicated(obj, "statefulset")


def check_job(obj: Manifest) -> Iterator[Cause]:
    """A Job."""
    spec = obj.get("spec") or {}
    for name in ("parallelism", "completions", "backoffLimit"):
        yield from _check_not_negative(spec, name)
    template = spec.get("template") or {}
    yield from validation_pods.check_template(template, "spec.template")
    policy = (template.get("spec") or {}).get("restartPolicy")
    if policy not in ("OnFailure", "Never"):
        yield field_errors.unsupported("spec.template.spec.restartPolicy", policy, ("OnFailure", "Never"))


def check_selector_update(obj: Manifest, old: Manifest) -> Iterator[Cause]:
    """Selectors never change: pods would be left without an owner."""
    selector = obj["spec"].get("selector")
    if selector != old["spec"].get("selector"):
        yield field_errors.invalid("spec.selector", selector, _IMMUTABLE)


def check_job_update(obj: Manifest, old: Manifest) -> Iterator[Cause]:
    """Neither what a Job runs nor how its pods are counted changes."""
    for name in ("completions", "selector", "template", "completionMode"):
        if obj["spec"].get(name) != old["spec"].get(name):
            yield field_errors.invalid(f"spec.{name}", obj["spec"].get(name), _IMMUTABLE)


def matches(selector: Mapping[str, Any] | None, labels: Mapping[str, str]) -> bool:
    """Whether labels meet a LabelSelector; none at all meets nothing."""
    if selector is None:
        return False
    plain = all(labels.get(name) == value for name, value in (selector.get("matchLabels") or {}).items())
    return plain and all(_holds(each, labels) for each in selector.get("matchExpressions") or ())


def _holds(expression: Mapping[str, Any], labels: Mapping[str, str]) -> bool:
    key, values = expression.get("key"), expression.get("values") or ()
    checks = {
        "In": labels.get(str(key)) in values,
        "NotIn": labels.get(str(key)) not in values,
        "Exists": key in labels,
        "DoesNotExist": key not in labels,
    }
    return checks.get(expression.get("operator", ""), False)


def _check_replicated(obj: Manifest, word: str) -> Iterator[Cause]:
    spec = obj.get("spec") or {}
    yield from _check_not_negative(spec, "replicas")
    selector = spec.get("selector")
    if selector is None:
        yield field_errors.required("spec.selector")
    else:
        yield from _check_selector(selector, "spec.selector")
        if not _requirements(selector):
            yield field_errors.invalid("spec.selector", selector, f"empty selector is invalid for {word}")
    yield from _check_match(spec)
    yield from _check_running_template(spec)


def _check_not_negative(spec: Mapping[str, Any], name: str) -> Iterator[Cause]:
    if spec.get(name, 0) < 0:
        yield field_errors.invalid(f"spec.{name}", spec[name], "must be greater than or equal to 0")


def _check_match(spec: Mapping[str, Any]) -> Iterator[Cause]:
    labels = ((spec.get("template") or {}).get("metadata") or {}).get("labels") or {}
    if not matches(spec.get("selector"), labels):
        yield field_errors.invalid("spec.template.metadata.labels", labels, _MISMATCH)


def _check_running_template(spec: Mapping[str, Any]) -> Iterator[Cause]:
    template = spec.get("template") or {}
    yield from validation_pods.check_template(template, "spec.template")
    policy = (template.get("spec") or {}).get("restartPolicy")
    if policy != "Always":
        yield field_errors.unsupported("spec.template.spec.restartPolicy", policy, ("Always",))


def _requirements(selector: Mapping[str, Any]) -> int:
    return len(selector.get("matchLabels") or ()) + len(selector.get("matchExpressions") or ())


def _check_selector(selector: Mapping[str, Any] | None, field: str) -> Iterator[Cause]:
    for name, value in sorted(((selector or {}).get("matchLabels") or {}).items()):
        here = f"{field}.matchLabels"
        yield from (field_errors.invalid(here, name, problem) for problem in name_rules.qualified_name(name))
        yield from (field_errors.invalid(here, value, problem) for problem in name_rules.label_value(value))
    for number, each in enumerate((selector or {}).get("matchExpressions") or ()):
        here = field_errors.at(f"{field}.matchExpressions", number)
        operator, values = each.get("operator", ""), each.get("values") or ()
        if operator not in _OPERATORS:
            yield field_errors.invalid(f"{here}.operator", operator, "not a valid selector operator")
        elif operator in ("In", "NotIn") and not values:
            yield field_errors.required(f"{here}.values", "must be specified when `operator` is 'In' or 'NotIn'")
        elif operator in ("Exists", "DoesNotExist") and values:
            why = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'"
            yield field_errors.forbidden(f"{here}.values", why)
        for problem in name_rules.qualified_name(each.get("key", "")):
            yield field_errors.invalid(f"{here}.key", each.get("key", ""), problem)
