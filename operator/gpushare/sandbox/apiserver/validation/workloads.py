"""Rules of DaemonSets, Deployments, ReplicaSets, StatefulSets and Jobs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from gpushare.domain.manifests import Manifest
from gpushare.sandbox.apiserver import field_errors
from gpushare.sandbox.apiserver.objects import selectors, syntax
from gpushare.sandbox.apiserver.statuses import Cause
from gpushare.sandbox.apiserver.validation import pods, strategies

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
    yield from strategies.check_daemon_set(spec.get("updateStrategy") or {})


def check_deployment(obj: Manifest) -> Iterator[Cause]:
    """A Deployment."""
    yield from check_replicated(obj, word="deployment")
    yield from strategies.check_deployment((obj.get("spec") or {}).get("strategy") or {})


def check_replicated(obj: Manifest, *, word: str) -> Iterator[Cause]:
    """A kind with replicas; `word` is what texts call it."""
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


def check_job(obj: Manifest) -> Iterator[Cause]:
    """A Job."""
    spec = obj.get("spec") or {}
    for name in ("parallelism", "completions", "backoffLimit"):
        yield from _check_not_negative(spec, name)
    template = spec.get("template") or {}
    yield from pods.check_template(template, "spec.template")
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


def _check_not_negative(spec: Mapping[str, Any], name: str) -> Iterator[Cause]:
    if spec.get(name, 0) < 0:
        yield field_errors.invalid(f"spec.{name}", spec[name], "must be greater than or equal to 0")


def _check_match(spec: Mapping[str, Any]) -> Iterator[Cause]:
    labels = ((spec.get("template") or {}).get("metadata") or {}).get("labels") or {}
    selector = spec.get("selector")
    if selector is None or not selectors.is_match(selector, labels):
        yield field_errors.invalid("spec.template.metadata.labels", labels, _MISMATCH)


def _check_running_template(spec: Mapping[str, Any]) -> Iterator[Cause]:
    template = spec.get("template") or {}
    yield from pods.check_template(template, "spec.template")
    policy = (template.get("spec") or {}).get("restartPolicy")
    if policy != "Always":
        yield field_errors.unsupported("spec.template.spec.restartPolicy", policy, ("Always",))


def _requirements(selector: Mapping[str, Any]) -> int:
    return len(selector.get("matchLabels") or ()) + len(selector.get("matchExpressions") or ())


def _check_selector(selector: Mapping[str, Any] | None, field: str) -> Iterator[Cause]:
    for name, value in sorted(((selector or {}).get("matchLabels") or {}).items()):
        here = f"{field}.matchLabels"
        yield from field_errors.all_invalid(here, name, syntax.qualified_name(name))
        yield from field_errors.all_invalid(here, value, syntax.label_value(value))
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
        yield from field_errors.all_invalid(
            f"{here}.key", each.get("key", ""), syntax.qualified_name(each.get("key", ""))
        )
