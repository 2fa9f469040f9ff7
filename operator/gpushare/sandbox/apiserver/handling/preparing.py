"""What a server sets on its own in a few kinds when they are created or updated, before they are checked.

Called by `writing`. Defaults that follow from the object alone are in `defaults`; here is what clients have no say in.
"""

from __future__ import annotations

import base64
import ipaddress
import random
from collections.abc import Callable, Mapping
from typing import Any

from gpushare.domain.manifests import Manifest
from gpushare.sandbox.apiserver.objects import times
from gpushare.sandbox.apiserver.resources import CUSTOM_RESOURCE_DEFINITIONS, NAMESPACES, NODES, Key, Resource

DAEMON_SETS: Key = ("apps", "daemonsets")
SERVICES: Key = ("", "services")
SECRETS: Key = ("", "secrets")
_TEMPLATE_GENERATION = "deprecated.daemonset.template.generation"
"""An old field of DaemonSets, which survives as an annotation."""
_SERVICE_NETWORK = ipaddress.ip_network("10.96.0.0/12")
_STATUS_KEPT_ON_CREATE = frozenset({NODES, ("apiregistration.k8s.io", "apiservices")})
"""A kubelet registers its node with a status; everybody else's first status is dropped."""


def prepare_create(resource: Resource, obj: Manifest) -> None:
    """Sets what only the server may say in a new object, in place."""
    if resource.has_status and resource.key not in _STATUS_KEPT_ON_CREATE:
        obj.pop("status", None)
    prepare = _ON_CREATE.get(resource.key)
    if prepare:
        prepare(obj)


def prepare_update(resource: Resource, obj: Manifest, old: Manifest) -> None:
    """Sets what only the server may say in a new state of an object, in place."""
    prepare = _ON_UPDATE.get(resource.key)
    if prepare:
        prepare(obj, old)


def _namespace(obj: Manifest) -> None:
    metadata = obj["metadata"]
    metadata["labels"] = {**(metadata.get("labels") or {}), "kubernetes.io/metadata.name": metadata["name"]}
    obj["spec"] = {**(obj.get("spec") or {}), "finalizers": ["kubernetes"]}
    obj["status"] = {"phase": "Active"}


def _secret(obj: Manifest) -> None:
    texts = obj.pop("stringData", None)
    if texts:
        data = {key: base64.b64encode(value.encode()).decode() for key, value in texts.items()}
        obj["data"] = {**(obj.get("data") or {}), **data}


def _service(obj: Manifest) -> None:
    spec = obj["spec"] = dict(obj.get("spec") or {})
    if spec.get("type") != "ExternalName" and not spec.get("clusterIP"):
        spec["clusterIP"] = str(_SERVICE_NETWORK[random.randrange(256, 65_536)])  # noqa: S311 - an address, no secret
    if spec.get("clusterIP"):
        spec.setdefault("clusterIPs", [spec["clusterIP"]])
    obj["status"] = {"loadBalancer": {}}


def _node(obj: Manifest) -> None:
    # Until a controller has seen the node Ready, only pods that tolerate this come to it.
    spec = obj["spec"] = dict(obj.get("spec") or {})
    taint = {"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"}
    spec["taints"] = [*(each for each in spec.get("taints") or () if each != taint), taint]


def _daemon_set(obj: Manifest) -> None:
    _annotate(obj, _TEMPLATE_GENERATION, "1")


def _daemon_set_update(obj: Manifest, old: Manifest) -> None:
    before = (old["metadata"].get("annotations") or {}).get(_TEMPLATE_GENERATION, "1")
    changed = obj["spec"].get("template") != old["spec"].get("template")
    _annotate(obj, _TEMPLATE_GENERATION, str(int(before) + 1) if changed else before)


def _annotate(obj: Manifest, key: str, value: str) -> None:
    metadata = obj["metadata"]
    metadata["annotations"] = {**(metadata.get("annotations") or {}), key: value}


def _definition(obj: Manifest) -> None:
    spec = obj["spec"] = dict(obj.get("spec") or {})
    names = spec["names"] = dict(spec.get("names") or {})
    names.setdefault("singular", names.get("kind", "").lower())
    names.setdefault("listKind", f"{names.get('kind', '')}List")
    obj["status"] = {
        "acceptedNames": names,
        "conditions": [
            _condition("NamesAccepted", "NoConflicts", "no conflicts found"),
            _condition("Established", "InitialNamesAccepted", "the initial names have been accepted"),
        ],
        "storedVersions": [each["name"] for each in spec.get("versions") or [] if each.get("storage")],
    }


def _condition(name: str, reason: str, message: str) -> dict[str, Any]:
    return {"type": name, "status": "True", "lastTransitionTime": times.now(), "reason": reason, "message": message}


def _definition_update(obj: Manifest, _: Manifest) -> None:
    fresh = dict(obj)
    _definition(fresh)
    obj["spec"] = fresh["spec"]
    if "status" in obj:
        obj["status"] = {**obj["status"], "acceptedNames": fresh["status"]["acceptedNames"]}


def _service_update(obj: Manifest, old: Manifest) -> None:
    spec = obj["spec"] = dict(obj.get("spec") or {})
    for name in ("clusterIP", "clusterIPs"):
        if not spec.get(name) and old["spec"].get(name):
            spec[name] = old["spec"][name]


_ON_CREATE: Mapping[Key, Callable[[Manifest], None]] = {
    NAMESPACES: _namespace,
    NODES: _node,
    DAEMON_SETS: _daemon_set,
    SECRETS: _secret,
    SERVICES: _service,
    CUSTOM_RESOURCE_DEFINITIONS: _definition,
}
_ON_UPDATE: Mapping[Key, Callable[[Manifest, Manifest], None]] = {
    DAEMON_SETS: _daemon_set_update,
    SECRETS: lambda obj, _: _secret(obj),
    SERVICES: _service_update,
    CUSTOM_RESOURCE_DEFINITIONS: _definition_update,
}
