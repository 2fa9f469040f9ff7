"""Behind which address a service is: that of one of its ready pods. Pure; used for webhooks and for scheduler extenders."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from gpushare.domain.manifests import Manifest


def address_of(service: Manifest, port: int, pods: Iterable[Manifest]) -> str | None:
    """`ip:port` of the first ready pod, by name, of a service; None where it has none, or no such port."""
    spec = service["spec"]
    entry = next((each for each in spec.get("ports") or () if each["port"] == port), None)
    wanted = spec.get("selector")
    if entry is None or not wanted:
        return None
    ready = (pod for pod in pods if _is_selected(pod, wanted) and _is_ready(pod))
    pod = min(ready, key=lambda each: str(each["metadata"]["name"]), default=None)
    number = _port_of(pod, entry.get("targetPort") or port) if pod else None
    return f"{pod['status']['podIP']}:{number}" if pod and number else None


def _is_selected(pod: Manifest, wanted: Mapping[str, str]) -> bool:
    return wanted.items() <= (pod["metadata"].get("labels") or {}).items()


def _is_ready(pod: Manifest) -> bool:
    status = pod.get("status") or {}
    conditions = status.get("conditions") or ()
    return (
        bool(status.get("podIP"))
        and not pod["metadata"].get("deletionTimestamp")
        and any(each["type"] == "Ready" and each["status"] == "True" for each in conditions)
    )


def _port_of(pod: Manifest, target: Any) -> int | None:
    """The number of a port that a service names, or gives itself."""
    if isinstance(target, int):
        return target
    ports = (port for container in pod["spec"]["containers"] for port in container.get("ports") or ())
    return next((int(port["containerPort"]) for port in ports if port.get("name") == target), None)
