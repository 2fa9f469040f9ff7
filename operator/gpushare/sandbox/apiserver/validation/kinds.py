"""Rules of the smaller kinds: nodes, ConfigMaps, Secrets, Services, Leases, Events."""

from __future__ import annotations

import base64
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from gpushare.domain.manifests import Manifest
from gpushare.sandbox.apiserver import field_errors
from gpushare.sandbox.apiserver.objects import syntax
from gpushare.sandbox.apiserver.statuses import Cause
from gpushare.sandbox.apiserver.validation import amounts

_DATA_LIMIT: Final = 1024 * 1024
_NOTE_LIMIT: Final = 1024
_WORD_LIMIT: Final = 128
_FROZEN: Final = "field is immutable when `immutable` is set"
_IMMUTABLE: Final = "field is immutable"
_EFFECTS: Final = ("NoSchedule", "PreferNoSchedule", "NoExecute")
_HIGHEST_PRIORITY: Final = 1_000_000_000
"""Of those that are not Kubernetes' own."""


def check_node(obj: Manifest) -> Iterator[Cause]:
    """A Node: its taints, and whole numbers of what plugins offer."""
    for name in ("capacity", "allocatable"):
        offered = (obj.get("status") or {}).get(name) or {}
        yield from amounts.check_amounts(offered, f"status.{name}")
    yield from _check_taints((obj.get("spec") or {}).get("taints") or ())


def check_config_map(obj: Manifest) -> Iterator[Cause]:
    """A ConfigMap."""
    data, binary = obj.get("data") or {}, obj.get("binaryData") or {}
    yield from _check_keys(data, "data")
    yield from _check_keys(binary, "binaryData")
    for name in sorted(data.keys() & binary.keys()):
        yield field_errors.invalid(field_errors.key("data", name), name, "duplicate of key present in binaryData")
    size = sum(len(value.encode()) for value in data.values()) + sum(map(_decoded_size, binary.values()))
    if size > _DATA_LIMIT:
        yield field_errors.too_long("[]", _DATA_LIMIT)


def check_secret(obj: Manifest) -> Iterator[Cause]:
    """A Secret."""
    data = obj.get("data") or {}
    yield from _check_keys(data, "data")
    if sum(map(_decoded_size, data.values())) > _DATA_LIMIT:
        yield field_errors.too_long("data", _DATA_LIMIT)
    if obj.get("type") == "kubernetes.io/tls":
        for name in ("tls.crt", "tls.key"):
            if name not in data:
                yield field_errors.required(field_errors.key("data", name))


def check_secret_update(obj: Manifest, old: Manifest) -> Iterator[Cause]:
    """A Secret keeps its type, and its data once it is frozen."""
    if obj.get("type") != old.get("type"):
        yield field_errors.invalid("type", obj.get("type"), _IMMUTABLE)
    yield from check_frozen_data(obj, old)


def check_frozen_data(obj: Manifest, old: Manifest) -> Iterator[Cause]:
    """Data that was declared immutable stays so, and as it is."""
    if not old.get("immutable"):
        return
    for name in ("immutable", "data", "binaryData"):
        if obj.get(name) != old.get(name):
            yield field_errors.forbidden(name, _FROZEN)


def check_service(obj: Manifest) -> Iterator[Cause]:
    """A Service."""
    spec = obj.get("spec") or {}
    if not spec.get("ports") and spec.get("type") != "ExternalName" and spec.get("clusterIP") != "None":
        yield field_errors.required("spec.ports")
    for number, port in enumerate(spec.get("ports") or ()):
        here = field_errors.at("spec.ports", number)
        if not 0 < port.get("port", 0) < 65536:
            yield field_errors.invalid(f"{here}.port", port.get("port", 0), "must be between 1 and 65535, inclusive")
        if len(spec["ports"]) > 1 and not port.get("name"):
            yield field_errors.required(f"{here}.name")


def check_service_update(obj: Manifest, old: Manifest) -> Iterator[Cause]:
    """A Service keeps its address."""
    address, before = obj["spec"].get("clusterIP"), old["spec"].get("clusterIP")
    if before and address and address != before:
        yield field_errors.invalid("spec.clusterIPs[0]", [address], "may not change once set")


def check_lease(obj: Manifest) -> Iterator[Cause]:
    """A Lease."""
    spec = obj.get("spec") or {}
    if spec.get("holderIdentity") == "":
        yield field_errors.invalid("spec.holderIdentity", "", "must not be empty")
    if spec.get("leaseDurationSeconds", 1) <= 0:
        yield field_errors.invalid("spec.leaseDurationSeconds", spec["leaseDurationSeconds"], "must be greater than 0")
    if spec.get("leaseTransitions", 0) < 0:
        why = "must be greater than or equal to 0"
        yield field_errors.invalid("spec.leaseTransitions", spec["leaseTransitions"], why)


def check_runtime_class(obj: Manifest) -> Iterator[Cause]:
    """A RuntimeClass names what the runtime of the nodes knows."""
    handler = obj.get("handler", "")
    if not handler:
        yield field_errors.required("handler")
    else:
        yield from field_errors.all_invalid("handler", handler, syntax.label(handler))


def check_priority_class(obj: Manifest) -> Iterator[Cause]:
    """A PriorityClass; those of Kubernetes itself are above all others."""
    if not obj["metadata"]["name"].startswith("system-") and obj.get("value", 0) > _HIGHEST_PRIORITY:
        why = f"maximum allowed value of a user defined priority is {_HIGHEST_PRIORITY}"
        yield field_errors.forbidden("value", why)


def check_event(obj: Manifest, *, strict: bool) -> Iterator[Cause]:
    """An Event; strictly those that come through `events.k8s.io`, whatever names their fields are stored under."""
    namespace = obj["metadata"].get("namespace", "")
    about = (obj.get("involvedObject") or {}).get("namespace", "")
    # Objects of the cluster have no namespace: events about them stand in the default one.
    if about != namespace and (about or namespace != "default"):
        yield field_errors.invalid("involvedObject.namespace", about, "does not match event.namespace")
    if strict and not obj.get("eventTime"):
        yield field_errors.required("eventTime")
    if strict and obj.get("type") not in ("Normal", "Warning"):
        yield field_errors.invalid("type", "", f"has invalid value: {obj.get('type', '')}")
    if strict or obj.get("eventTime"):
        yield from _check_new_event(obj)


def _check_new_event(obj: Manifest) -> Iterator[Cause]:
    for name, shown in (
        ("reportingComponent", "reportingController"), ("reportingInstance", "reportingInstance"), ("action", "action"),
        ("reason", "reason"),
    ):  # fmt: skip
        text = obj.get(name) or ""
        if not text:
            yield field_errors.required(shown)
        elif shown == "reportingController":
            yield from field_errors.all_invalid(shown, text, syntax.qualified_name(text))
        elif len(text) > _WORD_LIMIT:
            yield field_errors.invalid(shown, "", f"can have at most {_WORD_LIMIT} characters")
    if len(obj.get("message") or "") > _NOTE_LIMIT:
        yield field_errors.invalid("message", "", f"can have at most {_NOTE_LIMIT} characters")


def _check_taints(taints: Sequence[Mapping[str, Any]]) -> Iterator[Cause]:
    seen: set[tuple[Any, Any]] = set()
    for number, taint in enumerate(taints):
        here = field_errors.at("metadata.taints", number)
        key, value, effect = taint.get("key", ""), taint.get("value", ""), taint.get("effect", "")
        yield from field_errors.all_invalid(f"{here}.key", key, syntax.qualified_name(key))
        yield from field_errors.all_invalid(f"{here}.value", value, syntax.label_value(value))
        if not effect:
            yield field_errors.required(f"{here}.effect")
        elif effect not in _EFFECTS:
            yield field_errors.unsupported(f"{here}.effect", effect, _EFFECTS)
        if (key, effect) in seen:
            yield field_errors.duplicate(here, taint)
        seen.add((key, effect))


def _check_keys(data: Mapping[str, Any], field: str) -> Iterator[Cause]:
    for name in sorted(data):
        yield from field_errors.all_invalid(field_errors.key(field, name), name, syntax.config_key(name))


def _decoded_size(text: str) -> int:
    return len(base64.b64decode(text))
