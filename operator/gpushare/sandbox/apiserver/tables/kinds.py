"""Columns of the built-in kinds, in the words and the order of a real server. Called by `building`."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Final

from gpushare.domain.manifests import Manifest
from gpushare.sandbox.apiserver.objects import times
from gpushare.sandbox.apiserver.tables import pods, workloads
from gpushare.sandbox.apiserver.tables.columns import (
    AGE,
    NAME,
    NONE,
    Cell,
    Column,
    at,
    count,
    joined,
    number,
    selector,
    text,
    true_conditions,
    value_at,
    wide,
)

_ROLE_LABEL: Final = "node-role.kubernetes.io/"
_UNKNOWN: Final = "<unknown>"


def _node_status(obj: Manifest, _: datetime) -> str:
    known = value_at(obj, '.status.conditions[?(@.type=="Ready")].status')
    status = "Ready" if "Ready" in true_conditions(obj) else "NotReady" if known else "Unknown"
    return f"{status},SchedulingDisabled" if value_at(obj, ".spec.unschedulable") else status


def _node_roles(obj: Manifest, _: datetime) -> str:
    labels = value_at(obj, ".metadata.labels", {})
    return joined(sorted(key.removeprefix(_ROLE_LABEL) for key in labels if key.startswith(_ROLE_LABEL)))


def _node_address(kind: str) -> Cell:
    return at(f'.status.addresses[?(@.type=="{kind}")].address', NONE)


def _kernel(obj: Manifest, _: datetime) -> str:
    kernel, machine = (value_at(obj, f".status.nodeInfo.{name}") for name in ("kernelVersion", "architecture"))
    return f"{kernel or _UNKNOWN} ({machine})" if machine else str(kernel or _UNKNOWN)


def _first_seen(obj: Manifest, now: datetime) -> str:
    return times.age(value_at(obj, ".firstTimestamp") or value_at(obj, ".eventTime"), now)


def _last_seen(obj: Manifest, now: datetime) -> str:
    last = value_at(obj, ".series.lastObservedTime") or value_at(obj, ".lastTimestamp")
    return times.age(last, now) if last else _first_seen(obj, now)


def _event_object(obj: Manifest, _: datetime) -> str:
    about = obj.get("involvedObject") or {}
    return "/".join(part for part in (about.get("kind", "").lower(), about.get("name")) if part)


def _event_source(obj: Manifest, _: datetime) -> str:
    reporter = value_at(obj, ".source.component") or value_at(obj, ".reportingComponent")
    return ", ".join(part for part in (reporter, value_at(obj, ".source.host")) if part)


# One for both forms of events, since rows are built from what is stored.
_EVENT: Final = (
    Column("Last Seen", _last_seen), text("Type", ".type"), text("Reason", ".reason"), Column("Object", _event_object),
    text("Subobject", ".involvedObject.fieldPath", priority=1), wide("Source", _event_source),
    Column("Message", lambda obj, _: value_at(obj, ".message").strip()), wide("First Seen", _first_seen),
    Column("Count", lambda obj, _: value_at(obj, ".series.count") or value_at(obj, ".count", 1), "integer", priority=1),
    Column("Name", at(".metadata.name"), priority=1, format="name"),
)  # fmt: skip


def _ports(obj: Manifest, _: datetime) -> str:
    return joined(
        f"{each['port']}{':' if each.get('nodePort') else ''}{each.get('nodePort') or ''}/{each.get('protocol', 'TCP')}"
        for each in value_at(obj, ".spec.ports", ())
    )


def _revision_owner(obj: Manifest, _: datetime) -> str:
    owner = next((each for each in value_at(obj, ".metadata.ownerReferences", ()) if each.get("controller")), None)
    if owner is None:
        return NONE
    group = owner["apiVersion"].rpartition("/")[0]
    return f"{owner['kind'].lower()}{'.' if group else ''}{group}/{owner['name']}"


def _subjects(kind: str) -> Cell:
    def cell(obj: Manifest, _: datetime) -> str:
        subjects = [each for each in value_at(obj, ".subjects", ()) if each["kind"] == kind]
        place = "{namespace}/{name}" if kind == "ServiceAccount" else "{name}"
        return ", ".join(place.format(**{"namespace": "", **each}) for each in subjects)

    return cell


_BINDING: Final = (
    NAME, Column("Role", lambda obj, _: f"{obj['roleRef']['kind']}/{obj['roleRef']['name']}"), AGE,
    wide("Users", _subjects("User")), wide("Groups", _subjects("Group")), wide("ServiceAccounts", _subjects("ServiceAccount")),
)  # fmt: skip
_CREATED: Final = (NAME, Column("Created At", at(".metadata.creationTimestamp"), "date"))
_WEBHOOKS: Final = (NAME, count("Webhooks", ".webhooks"), AGE)

COLUMNS: Final[Mapping[tuple[str, str], tuple[Column, ...]]] = {
    **workloads.COLUMNS,
    ("", "pods"): pods.COLUMNS,
    ("", "nodes"): (
        NAME, Column("Status", _node_status), Column("Roles", _node_roles), AGE,
        text("Version", ".status.nodeInfo.kubeletVersion"), wide("Internal-IP", _node_address("InternalIP")),
        wide("External-IP", _node_address("ExternalIP")), text("OS-Image", ".status.nodeInfo.osImage", _UNKNOWN, priority=1),
        wide("Kernel-Version", _kernel),
        text("Container-Runtime", ".status.nodeInfo.containerRuntimeVersion", _UNKNOWN, priority=1),
    ),
    ("", "events"): _EVENT,
    ("events.k8s.io", "events"): _EVENT,
    ("", "configmaps"): (NAME, count("Data", ".data", ".binaryData"), AGE),
    ("", "secrets"): (NAME, text("Type", ".type"), count("Data", ".data"), AGE),
    ("", "namespaces"): (NAME, text("Status", ".status.phase"), AGE),
    ("", "services"): (
        NAME, text("Type", ".spec.type"), text("Cluster-IP", ".spec.clusterIP", NONE),
        Column("External-IP", lambda obj, _: joined(value_at(obj, ".spec.externalIPs", ()))), Column("Port(s)", _ports), AGE,
        wide("Selector", selector(".spec.selector")),
    ),
    ("apps", "controllerrevisions"): (NAME, Column("Controller", _revision_owner), number("Revision", ".revision"), AGE),
    ("apiextensions.k8s.io", "customresourcedefinitions"): _CREATED,
    ("coordination.k8s.io", "leases"): (NAME, text("Holder", ".spec.holderIdentity"), AGE),
    ("node.k8s.io", "runtimeclasses"): (NAME, text("Handler", ".handler"), AGE),
    ("policy", "poddisruptionbudgets"): (
        NAME, text("Min Available", ".spec.minAvailable", "N/A"), text("Max Unavailable", ".spec.maxUnavailable", "N/A"),
        number("Allowed Disruptions", ".status.disruptionsAllowed"), AGE,
    ),
    ("scheduling.k8s.io", "priorityclasses"): (
        NAME, number("Value", ".value"), Column("Global-Default", at(".globalDefault", default=False), "boolean"), AGE,
        text("PreemptionPolicy", ".preemptionPolicy"),
    ),
    ("rbac.authorization.k8s.io", "roles"): _CREATED,
    ("rbac.authorization.k8s.io", "clusterroles"): _CREATED,
    ("rbac.authorization.k8s.io", "rolebindings"): _BINDING,
    ("rbac.authorization.k8s.io", "clusterrolebindings"): _BINDING,
    ("admissionregistration.k8s.io", "mutatingwebhookconfigurations"): _WEBHOOKS,
    ("admissionregistration.k8s.io", "validatingwebhookconfigurations"): _WEBHOOKS,
}  # fmt: skip
