"""Rules of webhook configurations. Called by `checking`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from gpushare.domain.manifests import Manifest
from gpushare.sandbox.apiserver import field_errors
from gpushare.sandbox.apiserver.statuses import Cause
from gpushare.sandbox.apiserver.validation import policies

_VERSION: Final = "v1"
_SIDE_EFFECTS: Final = ("None", "NoneOnDryRun")
_FAILURE_POLICIES: Final = ("Fail", "Ignore")
_REINVOCATIONS: Final = ("Never", "IfNeeded")
_MOST_SECONDS: Final = 30
_LEAST_SEGMENTS: Final = 3


def check_configuration(obj: Manifest) -> Iterator[Cause]:
    """A MutatingWebhookConfiguration or ValidatingWebhookConfiguration."""
    seen: set[str] = set()
    for at, webhook in enumerate(obj.get("webhooks") or ()):
        path = field_errors.at("webhooks", at)
        if webhook["name"] in seen:
            yield field_errors.duplicate(f"{path}.name", webhook["name"])
        seen.add(webhook["name"])
        yield from _check_webhook(path, webhook)


def _check_webhook(path: str, webhook: Mapping[str, Any]) -> Iterator[Cause]:
    name, seconds = webhook["name"], webhook["timeoutSeconds"]
    if len(name.split(".")) < _LEAST_SEGMENTS:
        why = "should be a domain with at least three segments separated by dots"
        yield field_errors.invalid(f"{path}.name", name, why)
    if _VERSION not in (versions := webhook.get("admissionReviewVersions") or []):
        why = f"must include at least one of {_VERSION}"
        yield field_errors.invalid(f"{path}.admissionReviewVersions", versions, why)
    for field, allowed in (
        ("sideEffects", _SIDE_EFFECTS),
        ("failurePolicy", _FAILURE_POLICIES),
        ("reinvocationPolicy", _REINVOCATIONS),
    ):
        if webhook.get(field, allowed[0]) not in allowed:
            yield field_errors.unsupported(f"{path}.{field}", webhook[field], allowed)
    if not 1 <= seconds <= _MOST_SECONDS:
        why = f"the timeout value must be between 1 and {_MOST_SECONDS} seconds"
        yield field_errors.invalid(f"{path}.timeoutSeconds", seconds, why)
    yield from _check_client(f"{path}.clientConfig", webhook.get("clientConfig") or {})
    yield from policies.check_conditions(path, webhook)


def _check_client(path: str, config: Mapping[str, Any]) -> Iterator[Cause]:
    url = config.get("url")
    if bool(url) == bool(config.get("service")):
        yield field_errors.required(path, "exactly one of url or service is required")
    elif url and not url.startswith("https://"):
        scheme = url.partition("://")[0]
        yield field_errors.invalid(f"{path}.url", scheme, "'https' is the only allowed URL scheme")
