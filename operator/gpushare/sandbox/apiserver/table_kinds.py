"""Columns and cells of the built-in kinds, in the words and the order of a real server. Called by `tables`."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final

from gpushare.domain.manifests import Manifest
from gpushare.sandbox.apiserver import table_pods, table_workloads, times
from gpushare.sandbox.apiserver.table_cells import (
    AGE,
    NAME,
    NONE,
    Cells,
    Column,
    Columns,
    age_of,
    integer,
    joined,
    labels_text,
    name_of,
    selector_text,
    spec_of,
    status_of,
    wide,
)

_ROLE_LABEL: Final = "node-role.kubernetes.io/"
_UNSET: Final = "<unset>"


def _named(*columns: Column, cells: Cells) -> Columns:
    """A kind whose first column is its name and whose last is its age; `cells` gives those in between."""
    return Columns((NAME, *columns, AGE), lambda obj, now: [name_of(obj), *cells(obj, now), age_of(obj, now)])


def _node(obj: Manifest, now: datetime) -> list[Any]:
    info = status_of(obj).get("nodeInfo") or {}
    addresses = {each["type"]: each["address"] for each in reversed(status_of(obj).get("addresses") or ())}
    labels = obj["metadata"].get("labels") or {}
    roles = {key.removeprefix(_ROLE_LABEL) for key in labels if key.startswith(_ROLE_LABEL)}
    kernel = info.get("kernelVersion") or "<unknown>"
    if info.get("architecture"):
        kernel = f"{kernel} ({info['architecture']})"
    return [
        name_of(obj), _node_status(obj), joined(sorted(roles - {""})), age_of(obj, now), info.get("kubeletVersion", ""),
        addresses.get("InternalIP", NONE), addresses.get("ExternalIP", NONE), info.get("osImage") or "<unknown>", kernel,
        info.get("containerRuntimeVersion") or "<unknown>",
    ]  # fmt: skip


def _node_status(obj: Manifest) -> str:
    ready = next((each for each in status_of(obj).get("conditions") or () if each["type"] == "Ready"), None)
    status = "Unknown" if ready is None else "Ready" if ready["status"] == "True" else "NotReady"
    return f"{status},SchedulingDisabled" if spec_of(obj).get("unschedulable") else status


def _event(obj: Manifest, now: datetime) -> list[Any]:
    series, about = obj.get("series") or {}, obj.get("involvedObject") or obj.get("regarding") or {}
    first = obj.get("firstTimestamp") or obj.get("deprecatedFirstTimestamp") or obj.get("eventTime")
    last = obj.get("lastTimestamp") or obj.get("deprecatedLastTimestamp")
    count = series.get("count") or obj.get("count") or obj.get("deprecatedCount") or 1
    first_seen = times.age(first, now)
    last_seen = times.age(series.get("lastObservedTime") or last, now) if series or last else first_seen
    source = obj.get("source") or obj.get("deprecatedSource") or {}
    reporter = source.get("component") or obj.get("reportingComponent") or obj.get("reportingController") or ""
    target = f"{about.get('kind', '').lower()}/{about['name']}" if about.get("name") else about.get("kind", "").lower()
    return [
        last_seen, obj.get("type", ""), obj.get("reason", ""), target, about.get("fieldPath", ""),
        f"{reporter}, {source['host']}" if source.get("host") else reporter,
        (obj.get("message") or obj.get("note") or "").strip(), first_seen, count, name_of(obj),
    ]  # fmt: skip


def _service(obj: Manifest, now: datetime) -> list[Any]:
    spec = spec_of(obj)
    ports = [
        f"{each['port']}{':' if each.get('nodePort') else ''}{each.get('nodePort') or ''}/{each.get('protocol', 'TCP')}"
        for each in spec.get("ports") or ()
    ]
    return [
        name_of(obj), spec.get("type", ""), joined(spec.get("clusterIPs", [])[:1] or [spec.get("clusterIP") or NONE]),
        joined(spec.get("externalIPs") or ()), joined(ports), age_of(obj, now), labels_text(spec.get("selector")),
    ]  # fmt: skip


def _data_count(obj: Manifest, _: datetime) -> list[Any]:
    return [len(obj.get("data") or {}) + len(obj.get("binaryData") or {})]


def _budget(obj: Manifest, _: datetime) -> list[Any]:
    spec = spec_of(obj)
    return [
        spec.get("minAvailable", "N/A"),
        spec.get("maxUnavailable", "N/A"),
        status_of(obj).get("disruptionsAllowed", 0),
    ]


def _revision(obj: Manifest, _: datetime) -> list[Any]:
    owner = next((each for each in obj["metadata"].get("ownerReferences") or () if each.get("controller")), None)
    if owner is None:
        return [NONE, obj.get("revision", 0)]
    group = owner["apiVersion"].rpartition("/")[0]
    return [f"{owner['kind'].lower()}{'.' if group else ''}{group}/{owner['name']}", obj.get("revision", 0)]


def _binding(obj: Manifest, now: datetime) -> list[Any]:
    subjects: dict[str, list[str]] = {"User": [], "Group": [], "ServiceAccount": []}
    for each in obj.get("subjects") or ():
        name = f"{each.get('namespace', '')}/{each['name']}" if each["kind"] == "ServiceAccount" else each["name"]
        subjects.setdefault(each["kind"], []).append(name)
    role = f"{obj['roleRef']['kind']}/{obj['roleRef']['name']}"
    lists = [", ".join(subjects[kind]) for kind in ("User", "Group", "ServiceAccount")]
    return [name_of(obj), role, age_of(obj, now), *lists]


def _policy_parameter(obj: Manifest) -> str:
    kind = spec_of(obj).get("paramKind")
    return f"{kind['apiVersion']}/{kind['kind']}" if kind else _UNSET


_CREATED: Final = Column("Created At", "date")
_BINDING: Final = Columns((NAME, Column("Role"), AGE, wide("Users"), wide("Groups"), wide("ServiceAccounts")), _binding)
_CREATED_ONLY: Final = Columns(
    (NAME, _CREATED), lambda obj, _: [name_of(obj), obj["metadata"].get("creationTimestamp", "")]
)
_WEBHOOKS: Final = _named(integer("Webhooks"), cells=lambda obj, _: [len(obj.get("webhooks") or ())])
_EVENT: Final = Columns(
    (
        Column("Last Seen"), Column("Type"), Column("Reason"), Column("Object"), wide("Subobject"), wide("Source"),
        Column("Message"), wide("First Seen"), integer("Count", 1), Column("Name", priority=1, format="name"),
    ),
    _event,
)  # fmt: skip

COLUMNS: Final[Mapping[tuple[str, str], Columns]] = {
    **table_workloads.COLUMNS,
    ("", "pods"): table_pods.PODS,
    ("", "nodes"): Columns(
        (
            NAME, Column("Status"), Column("Roles"), AGE, Column("Version"), wide("Internal-IP"), wide("External-IP"),
            wide("OS-Image"), wide("Kernel-Version"), wide("Container-Runtime"),
        ),
        _node,
    ),
    ("", "events"): _EVENT,
    ("events.k8s.io", "events"): _EVENT,
    ("", "configmaps"): _named(integer("Data"), cells=_data_count),
    ("", "secrets"): _named(
        Column("Type"), integer("Data"), cells=lambda obj, _: [obj.get("type", ""), len(obj.get("data") or {})]
    ),
    ("", "namespaces"): _named(Column("Status"), cells=lambda obj, _: [status_of(obj).get("phase", "")]),
    ("", "services"): Columns(
        (NAME, Column("Type"), Column("Cluster-IP"), Column("External-IP"), Column("Port(s)"), AGE, wide("Selector")),
        _service,
    ),
    ("apps", "controllerrevisions"): Columns(
        (NAME, Column("Controller"), integer("Revision"), AGE),
        lambda obj, now: [name_of(obj), *_revision(obj, now), age_of(obj, now)],
    ),
    ("apiextensions.k8s.io", "customresourcedefinitions"): _CREATED_ONLY,
    ("coordination.k8s.io", "leases"): _named(
        Column("Holder"), cells=lambda obj, _: [spec_of(obj).get("holderIdentity", "")]
    ),
    ("node.k8s.io", "runtimeclasses"): _named(Column("Handler"), cells=lambda obj, _: [obj.get("handler", "")]),
    ("policy", "poddisruptionbudgets"): _named(
        Column("Min Available"), Column("Max Unavailable"), integer("Allowed Disruptions"), cells=_budget
    ),
    ("scheduling.k8s.io", "priorityclasses"): Columns(
        (NAME, integer("Value"), Column("Global-Default", "boolean"), AGE, Column("PreemptionPolicy")),
        lambda obj, now: [
            name_of(obj), obj.get("value", 0), obj.get("globalDefault", False), age_of(obj, now),
            obj.get("preemptionPolicy", ""),
        ],
    ),
    ("rbac.authorization.k8s.io", "roles"): _CREATED_ONLY,
    ("rbac.authorization.k8s.io", "clusterroles"): _CREATED_ONLY,
    ("rbac.authorization.k8s.io", "rolebindings"): _BINDING,
    ("rbac.authorization.k8s.io", "clusterrolebindings"): _BINDING,
    ("admissionregistration.k8s.io", "mutatingwebhookconfigurations"): _WEBHOOKS,
    ("admissionregistration.k8s.io", "validatingwebhookconfigurations"): _WEBHOOKS,
    ("admissionregistration.k8s.io", "validatingadmissionpolicies"): _named(
        integer("Validations"), Column("ParamKind"),
        cells=lambda obj, _: [len(spec_of(obj).get("validations") or ()), _policy_parameter(obj)],
    ),
    ("admissionregistration.k8s.io", "validatingadmissionpolicybindings"): _named(
        Column("PolicyName"), Column("ParamRef"), cells=lambda obj, _: [spec_of(obj).get("policyName", ""), _UNSET]
    ),
    ("resource.k8s.io", "resourceslices"): Columns(
        (NAME, Column("Node"), Column("Driver"), Column("Pool"), AGE),
        lambda obj, now: [
            name_of(obj), spec_of(obj).get("nodeName", ""), spec_of(obj).get("driver", ""),
            (spec_of(obj).get("pool") or {}).get("name", ""), age_of(obj, now),
        ],
    ),
    ("networking.k8s.io", "networkpolicies"): Columns(
        (NAME, Column("Pod-Selector"), AGE),
        lambda obj, now: [name_of(obj), selector_text(spec_of(obj).get("podSelector")), age_of(obj, now)],
    ),
}  # fmt: skip
