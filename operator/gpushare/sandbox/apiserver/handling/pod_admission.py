"""What admission adds to every new pod: service account and its token, tolerations, priority, first status.

Called by the write path when a pod is created, after its defaults.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from gpushare.domain.manifests import Manifest
from gpushare.sandbox.apiserver.objects import quantities
from gpushare.sandbox.apiserver.objects.jsonvalues import copied

_TOKEN_PATH: Final = "/var/run/secrets/kubernetes.io/serviceaccount"  # noqa: S105 - a path
_TOKEN_SECONDS: Final = 3607
"""A little over an hour, by which a real server tells its own volumes from those that people write."""
_TOLERATION_SECONDS: Final = 300
_UNREACHABLE: Final = ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable")
_COMPUTE: Final = ("cpu", "memory")


def admit(pod: Manifest, *, suffix: str, priority: int = 0, preemption: str = "PreemptLowerPriority") -> None:
    """Completes a new pod, in place.

    Args:
        pod: with its defaults.
        suffix: five letters or digits that end the name of the token volume.
        priority: of the pod's priority class.
        preemption: of the pod's priority class.
    """
    spec = pod["spec"]
    account = spec.setdefault("serviceAccountName", "default")
    spec["serviceAccount"] = account
    spec.setdefault("priority", priority)
    spec.setdefault("preemptionPolicy", preemption)
    if spec.get("automountServiceAccountToken", True):
        _mount_token(spec, f"kube-api-access-{suffix}")
    _tolerate(spec)
    pod["status"] = first_status(spec)


def first_status(spec: Mapping[str, Any]) -> Manifest:
    """The status of a new pod."""
    return {"phase": "Pending", "qosClass": qos_class(spec)}


def qos_class(spec: Mapping[str, Any]) -> str:
    """How the kubelet treats a pod when memory is short: Guaranteed, Burstable or BestEffort."""
    resources = [container.get("resources") or {} for container in _containers(spec)]
    asked = [_positive(each.get(part)) for each in resources for part in ("requests", "limits")]
    if not any(asked):
        return "BestEffort"
    guaranteed = all(
        len(limits := _positive(each.get("limits"))) == len(_COMPUTE) and _positive(each.get("requests")) == limits
        for each in resources
    )
    return "Guaranteed" if guaranteed else "Burstable"


def _positive(amounts: Mapping[str, Any] | None) -> dict[str, Any]:
    parsed = {name: quantities.parse(amounts[name]) for name in _COMPUTE if name in (amounts or {})} if amounts else {}
    return {name: amount for name, amount in parsed.items() if amount > 0}


def _containers(spec: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    yield from spec.get("initContainers") or ()
    yield from spec.get("containers") or ()


def _mount_token(spec: dict[str, Any], name: str) -> None:
    without = [
        container
        for container in _containers(spec)
        if all(mount.get("mountPath") != _TOKEN_PATH for mount in container.get("volumeMounts") or ())
    ]
    if not without:
        return
    for container in without:
        mount = {"mountPath": _TOKEN_PATH, "name": name, "readOnly": True}
        container["volumeMounts"] = [*(container.get("volumeMounts") or ()), mount]
    spec["volumes"] = [*(spec.get("volumes") or ()), {"name": name, "projected": copied(_PROJECTED)}]


def _tolerate(spec: dict[str, Any]) -> None:
    tolerations = list(spec.get("tolerations") or ())
    for key in _UNREACHABLE:
        if not any(_tolerates(each, key) for each in tolerations):
            tolerations.append(
                {"effect": "NoExecute", "key": key, "operator": "Exists", "tolerationSeconds": _TOLERATION_SECONDS}
            )
    spec["tolerations"] = tolerations


def _tolerates(toleration: Mapping[str, Any], key: str) -> bool:
    return toleration.get("key", key) == key and toleration.get("effect", "NoExecute") in ("NoExecute", "")


_PROJECTED: Final[Mapping[str, Any]] = {
    "defaultMode": 0o644,
    "sources": [
        {"serviceAccountToken": {"expirationSeconds": _TOKEN_SECONDS, "path": "token"}},
        {"configMap": {"items": [{"key": "ca.crt", "path": "ca.crt"}], "name": "kube-root-ca.crt"}},
        {
            "downwardAPI": {
                "items": [{"fieldRef": {"apiVersion": "v1", "fieldPath": "metadata.namespace"}, "path": "namespace"}]
            }
        },
    ],
}
