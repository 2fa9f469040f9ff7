"""Doors of objects other than the object itself: scale, binding, eviction, token, log."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, TypeAlias
from urllib.parse import quote, urlencode

from gpushare.domain.manifests import Manifest
from gpushare.sandbox.apiserver import field_errors, statuses
from gpushare.sandbox.apiserver.access.authentication import ISSUER, Authenticator
from gpushare.sandbox.apiserver.handling import attempts
from gpushare.sandbox.apiserver.handling.attempts import Attempt
from gpushare.sandbox.apiserver.handling.deleting import DeleteOptions, Deleter
from gpushare.sandbox.apiserver.handling.reviewing import Reviewed
from gpushare.sandbox.apiserver.handling.writing import Write
from gpushare.sandbox.apiserver.objects import jsonpaths, selectors, times
from gpushare.sandbox.apiserver.patching import json_patches, merging
from gpushare.sandbox.apiserver.protocol import bodies
from gpushare.sandbox.apiserver.requests import Answer, Request, Response
from gpushare.sandbox.apiserver.resources import NODES, PODS, Resource
from gpushare.sandbox.apiserver.storage import Record, Store

BUDGETS = ("policy", "poddisruptionbudgets")
_CREATED: Manifest = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201}
_LEAST_TOKEN_SECONDS, _TOKEN_SECONDS = 600, 3600
_KUBELET_PORT = 10250
_DEFAULT_REPLICA_PATHS = {"specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.replicas"}

_BINDING = Resource(group="", version="v1", kind="Binding", plural="bindings", namespaced=True)
_EVICTION = Resource(group="policy", version="v1", kind="Eviction", plural="evictions", namespaced=True)
_SCALE = Resource(group="autoscaling", version="v1", kind="Scale", plural="scales", namespaced=True)
_TOKEN_REQUEST = Resource(
    group="authentication.k8s.io", version="v1", kind="TokenRequest", plural="tokenrequests", namespaced=True
)

_POD = statuses.Kind("", "pods", "Pod")

Fetch: TypeAlias = Callable[[str], Awaitable[Answer]]
"""Reads an HTTPS address of a kubelet."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Subresources:
    """What the subresources do that are not just another way to write the object."""

    store: Store
    writer: Reviewed
    deleter: Deleter
    authenticator: Authenticator
    fetch: Fetch

    async def answer(self, resource: Resource, record: Record, name: str, request: Request, write: Write) -> Answer:
        """Answers one. Raises `ApiError`."""
        match name, request.method:
            case "scale", "GET":
                return Response.of(_scale_of(resource, record))
            case "scale", "PUT" | "PATCH":
                return Response.of(_scale_of(resource, await self._rescale(resource, record, request, write)))
            case "binding", "POST":
                binding = bodies.read_typed(request, _BINDING)
                _check_named(binding, record)
                return self.bind(resource, record, binding, write)
            case "eviction", "POST":
                return self._evict(resource, record, request)
            case "token", "POST":
                return self._issue(record, bodies.read_typed(request, _TOKEN_REQUEST))
            case "log", "GET":
                return await self._log(record.object, request)
            case "exec" | "attach" | "portforward", _:
                raise self._no_way_into(record.object, name, request)
            case _:
                raise statuses.method_not_allowed()

    # ---- scale

    async def _rescale(self, resource: Resource, record: Record, request: Request, write: Write) -> Record:
        scale = _scale_of(resource, record)
        if request.method == "PUT":
            wanted = bodies.read_object(request, _SCALE)
        elif request.content_type == "application/json-patch+json":
            wanted = json_patches.apply(scale, bodies.read_patch(request))
        else:
            wanted = merging.merge_patch(scale, bodies.read_patch(request))
        wanted = bodies.check_types(wanted if isinstance(wanted, dict) else {}, _SCALE)
        replicas = (wanted.get("spec") or {}).get("replicas", 0)
        if replicas < 0:
            cause = field_errors.invalid("spec.replicas", replicas, "must be greater than or equal to 0")
            raise statuses.invalid("Scale", "autoscaling", record.name, [cause])
        version = (wanted.get("metadata") or {}).get("resourceVersion")
        new = _with(record.object, _replica_path(resource, "specReplicasPath").strip(".").split("."), replicas)
        new["metadata"] = {**record.object["metadata"], **({"resourceVersion": version} if version else {})}
        return await self.writer.update(resource, record, new, write)

    # ---- pods

    def bind(self, resource: Resource, record: Record, binding: Manifest, write: Write) -> Response:
        """Assigns a pod to a node, with the annotations of the Binding. Raises `ApiError` 409."""
        pod = record.object
        self._check_binding(resource, pod, binding, write)
        node = _target_of(binding)
        uid = (binding.get("metadata") or {}).get("uid") or pod["metadata"]["uid"]
        if uid != pod["metadata"]["uid"]:
            why = f"Precondition failed: UID in precondition: {uid}, UID in object meta: {pod['metadata']['uid']}"
            raise _binding_conflict(record, why)
        if pod["metadata"].get("deletionTimestamp"):
            raise _binding_conflict(record, f"pod {record.name} is being deleted, cannot be assigned to a host")
        if pod["spec"].get("nodeName"):
            why = f'pod {record.name} is already assigned to node "{pod["spec"]["nodeName"]}"'
            raise _binding_conflict(record, why)
        metadata, binding_metadata = dict(pod["metadata"]), binding.get("metadata") or {}
        if binding_metadata.get("annotations"):
            metadata["annotations"] = {**(metadata.get("annotations") or {}), **binding_metadata["annotations"]}
        status = pod.get("status") or {}
        others = [each for each in status.get("conditions") or () if each["type"] != "PodScheduled"]
        scheduled = {"type": "PodScheduled", "status": "True", "lastProbeTime": None, "lastTransitionTime": times.now()}
        new = {**pod, "metadata": metadata, "spec": {**pod["spec"], "nodeName": node},
               "status": {**status, "conditions": [*others, scheduled]}}  # fmt: skip
        self.writer.writer.bind(resource, record, new, write)
        return Response.of(_CREATED, 201)

    def _check_binding(self, resource: Resource, pod: Manifest, binding: Manifest, write: Write) -> None:
        """Asks the policies about the Binding: its annotations become those of the pod, past every rule about pods."""
        place = {key: pod["metadata"][key] for key in ("name", "namespace")}
        attempt = Attempt(
            operation=attempts.CREATE,
            resource=resource.stored,
            user=write.user,
            new={**binding, "metadata": {**(binding.get("metadata") or {}), **place}},
            old=None,
            subresource="binding",
            dry_run=write.dry_run,
        )
        self.writer.writer.policies.check(attempt, write.warnings)

    def _evict(self, resource: Resource, record: Record, request: Request) -> Response:
        eviction = bodies.read_typed(request, _EVICTION)
        _check_named(eviction, record)
        options = DeleteOptions.parse(eviction.get("deleteOptions") or {}, request)
        if any(not _allows_disruption(each.object) for each in self._budgets(record)):
            message = "Cannot evict pod as it would violate the pod's disruption budget."
            raise statuses.too_many_requests(message, retry_after=0)
        self.deleter.delete(resource, record.namespace, record.name, options)
        return Response.of(_CREATED, 201)

    def _budgets(self, record: Record) -> list[Record]:
        labels = selectors.labels_of(record.object)
        return [
            each
            for each in self.store.objects(BUDGETS, record.namespace)
            if selectors.is_match(each.object["spec"].get("selector") or {}, labels)
        ]

    # ---- service accounts

    def _issue(self, record: Record, wanted: Manifest) -> Response:
        spec = wanted.get("spec") or {}
        reference = spec.get("boundObjectRef") or {}
        seconds = spec.get("expirationSeconds") or _TOKEN_SECONDS
        if seconds < _LEAST_TOKEN_SECONDS:
            why = "may not specify a duration less than 10 minutes"
            cause = field_errors.invalid("spec.expirationSeconds", seconds, why)
            raise statuses.invalid("TokenRequest", "authentication.k8s.io", "", [cause])
        pod = self._bound_pod(record, reference) if reference.get("kind") == "Pod" else None
        audiences = spec.get("audiences") or [ISSUER]
        token = self.authenticator.issue(record.object, pod, audiences, seconds)
        ends = times.written(datetime.fromtimestamp(token.expires, UTC))
        answer = {
            "kind": "TokenRequest", "apiVersion": "authentication.k8s.io/v1",
            "metadata": {"name": record.name, "namespace": record.namespace, "creationTimestamp": times.now()},
            "spec": {**spec, "audiences": audiences, "expirationSeconds": seconds, "boundObjectRef": reference or None},
            "status": {"token": token.text, "expirationTimestamp": ends},
        }  # fmt: skip
        return Response.of(answer, 201)

    def _bound_pod(self, account: Record, reference: Mapping[str, str]) -> Manifest:
        name = reference.get("name", "")
        record = self.store.get(PODS, account.namespace, name)
        if record is None:
            raise statuses.not_found(_POD, name)
        uid = record.object["metadata"]["uid"]
        if reference.get("uid", uid) != uid:
            why = f"the UID in the bound object reference ({reference['uid']}) does not match the UID in record. "
            raise statuses.conflict(_POD, name, why + "The object might have been deleted and then recreated")
        if record.object["spec"].get("serviceAccountName", "default") != account.name:
            raise statuses.bad_request(f'cannot bind token for serviceaccount "{account.name}" to pod running with different '
                                       "serviceaccount name.")  # fmt: skip
        return record.object

    # ---- containers

    def _no_way_into(self, pod: Manifest, name: str, request: Request) -> statuses.ApiError:
        """The refusal of what needs a connection into a pod: nobody runs in there who could answer."""
        about, what = (
            pod["metadata"],
            "" if name == "portforward" else _container(pod, request.query.get("container", "")),
        )
        if not pod["spec"].get("nodeName"):
            return statuses.bad_request(f"pod {about['name']} does not have a host assigned")
        command = f"kubectl logs -n {about['namespace']} {about['name']}" + (f" -c {what}" if what else "")
        return statuses.ApiError(
            501, "NotImplemented",
            f"{name} is not possible, since this pod is simulated; what a container was given, and prints, is in `{command}`",
        )  # fmt: skip

    async def _log(self, pod: Manifest, request: Request) -> Answer:
        container = _container(pod, request.query.get("container", ""))
        place = pod["spec"].get("nodeName", "")
        if not place:
            return Response(b"", content_type="text/plain")
        node = self.store.get(NODES, "", place)
        if node is None:
            raise statuses.not_found(_POD, place)  # a real server, too, calls it a pod
        status = node.object.get("status") or {}
        addresses = {each["type"]: each["address"] for each in status.get("addresses") or ()}
        port = ((status.get("daemonEndpoints") or {}).get("kubeletEndpoint") or {}).get("Port") or _KUBELET_PORT
        host = addresses.get("InternalIP") or addresses.get("Hostname") or node.name
        metadata = pod["metadata"]
        path = "/".join(quote(part) for part in (metadata["namespace"], metadata["name"], container))
        query = {key: value for key, value in request.query.items() if key not in ("container", "pretty")}
        suffix = f"?{urlencode(query)}" if query else ""
        return await self.fetch(f"https://{host}:{port}/containerLogs/{path}{suffix}")


def _container(pod: Manifest, wanted: str) -> str:
    name = pod["metadata"]["name"]
    main = [each["name"] for each in pod["spec"]["containers"]]
    every = [*main, *(each["name"] for each in pod["spec"].get("initContainers") or ())]
    if wanted:
        if wanted not in every:
            raise statuses.bad_request(f"container {wanted} is not valid for pod {name}")
        return wanted
    if len(every) > 1:
        raise statuses.bad_request(
            f"a container name must be specified for pod {name}, choose one of: [{' '.join(main)}]"
        )
    return str(main[0])


def _check_named(body: Manifest, record: Record) -> None:
    if (body.get("metadata") or {}).get("name", record.name) != record.name:
        raise statuses.bad_request(f"name in URL does not match name in {body['kind']} object")


def _target_of(binding: Manifest) -> str:
    """The node of a Binding. Raises `ApiError` 500, as a real server, for something else."""
    target = binding.get("target") or {}
    kind, name = target.get("kind", ""), str(target.get("name", ""))
    if kind not in ("", "Node"):
        cause = field_errors.unsupported("target.kind", kind, ("Node", "<empty>"))
        raise statuses.ApiError(500, "", str(cause))
    if not name:
        raise statuses.ApiError(500, "", str(field_errors.required("target.name")))
    return name


def _allows_disruption(budget: Manifest) -> bool:
    return bool((budget.get("status") or {}).get("disruptionsAllowed", 0) > 0)


def _binding_conflict(record: Record, why: str) -> statuses.ApiError:
    message = f'Operation cannot be fulfilled on pods/binding "{record.name}": {why}'
    return statuses.ApiError(409, "Conflict", message, details={"name": record.name, "kind": "pods/binding"})


def _scale_of(resource: Resource, record: Record) -> Manifest:
    metadata = record.object["metadata"]
    names = ("name", "namespace", "uid", "resourceVersion", "creationTimestamp")
    status: dict[str, Any] = {"replicas": _replicas(record.object, _replica_path(resource, "statusReplicasPath"))}
    selector = selectors.text(record.object["spec"].get("selector") or {}) if not resource.custom else ""
    if selector:
        status["selector"] = selector
    return {
        "kind": "Scale", "apiVersion": "autoscaling/v1", "metadata": {name: metadata[name] for name in names if name in metadata},
        "spec": {"replicas": _replicas(record.object, _replica_path(resource, "specReplicasPath"))},
        "status": status,
    }  # fmt: skip


def _replica_path(resource: Resource, name: str) -> str:
    own = (resource.crd_version.get("subresources") or {}).get("scale") or {}
    return str({**_DEFAULT_REPLICA_PATHS, **own}[name])


def _replicas(obj: Manifest, path: str) -> int:
    return next(iter(jsonpaths.find(obj, path)), None) or 0


def _with(obj: Manifest, path: list[str], value: Any) -> Manifest:
    if not path:
        return value  # type: ignore[no-any-return]  # the innermost call returns the value itself
    return {**obj, path[0]: _with(obj.get(path[0]) or {}, path[1:], value)}
