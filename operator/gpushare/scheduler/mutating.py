"""Judges pods that ask for fractions of GPUs, and fills in what their writers left out. Pure; called by `admission`.

Everything that it fills in is filled in once: pods come again when another webhook has changed them.
"""

from __future__ import annotations

import copy
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from gpushare import names
from gpushare.domain.fractions import Dialect, Grant
from gpushare.domain.manifests import Manifest
from gpushare.placement.counting import charge_of
from gpushare.placement.quotas import Quota
from gpushare.placement.requests import read_request
from gpushare.placement.settings import RequestSettings
from gpushare.placement.shapes import WHOLE, ContainerRequest, PodRequest
from gpushare.scheduler import reserved
from gpushare.serving.reviews import Refusal, Review, Verdict

DEFAULT_SCHEDULER: Final = "default-scheduler"
"""What the API server fills in before any webhook sees the pod."""
CORE_POLICIES: Final = ("default", "force", "disable")
_TOLERATION: Final = {"key": names.TAINT_FRACTIONS, "operator": "Exists", "effect": "NoSchedule"}


@dataclass(frozen=True, slots=True, kw_only=True)
class AdmissionSettings:
    """What an administrator decides about pods with fractions in the whole cluster."""

    requests: RequestSettings = field(default_factory=RequestSettings)
    scheduler_name: str = names.SCHEDULER
    """Who places them; empty: left as it is, where the cluster's own scheduler calls us."""
    force_scheduler: bool = True
    """Whether `default-scheduler` counts as not written, since nobody can tell."""
    runtime_class: str = ""
    """For pods that name none; empty: left out."""
    core_policy: str = "default"
    """When HAMi's library limits compute; `default`: its own rule."""
    hide_gpus: bool = False
    """Whether containers without a GPU are told to see none, whatever their image says."""
    allowed_env: Collection[str] = ()
    """Reserved variables that pods may set all the same."""


def judge(review: Review, settings: AdmissionSettings, room: Quota) -> Verdict:
    """What becomes of a pod. `room`: what is left of the quota of its namespace."""
    pod = review.manifest
    if forged := reserved.find_annotations(pod, review.before):
        return _refused(pod, reserved.describe_annotations(forged))
    if review.operation != "CREATE":
        return Verdict(manifest=pod)
    read = read_request(pod, settings.requests)
    warnings = [str(warning) for warning in read.warnings]
    if read.problems:
        message = "; ".join(map(str, read.problems))
        return Verdict(manifest=pod, refusal=Refusal(message=message, code=422, reason="Invalid"), warnings=warnings)
    if read.request is None:
        return Verdict(manifest=pod, warnings=warnings)
    refusal = next(_find_refusals(review, read.request, settings, room), None)
    if refusal is not None:
        return _refused(pod, refusal)
    return Verdict(manifest=_fill_in(pod, read.request, settings), warnings=[*warnings, *_remarks(pod, settings)])


def _refused(pod: Manifest, message: str) -> Verdict:
    return Verdict(manifest=pod, refusal=Refusal(message=message))


def _find_refusals(review: Review, request: PodRequest, settings: AdmissionSettings, room: Quota) -> Iterator[str]:
    spec = review.manifest["spec"]
    if found := reserved.find_variables(spec, settings.allowed_env, settings.core_policy):
        yield reserved.describe_variable(*found)
    for container in _containers(spec):
        if (container.get("securityContext") or {}).get("privileged"):
            yield (
                f'container "{container["name"]}" is privileged and so sees all GPUs of its node, beside pods that share '
                "them; leave privileged out, or give it a pod of its own that asks for no fraction"
            )
    if node := spec.get("nodeName"):
        yield (
            "spec.nodeName is set, so that nobody would choose a GPU; write it as a nodeSelector instead, "
            f"kubernetes.io/hostname: {node}"
        )
    if not request.is_charged:
        return
    charge = charge_of(
        {each.name: (Grant("", each.memory_mib, each.cores),) * each.gpus for each in request.containers},
        {each.name: each.kind for each in request.containers},
    )
    if not room.takes(charge):
        yield (
            f"exceeds the quota of namespace {review.namespace}: asks for {charge.memory_mib} MiB and {charge.cores} % "
            f"of compute, all GPUs together; {_describe_room(room)}"
        )


def _describe_room(room: Quota) -> str:
    left = (
        f"{max(amount, 0)}{unit}"
        for amount, unit in ((room.memory_mib, " MiB"), (room.cores, " %"))
        if amount is not None
    )
    return f"{' and '.join(left)} are left"


def _remarks(pod: Manifest, settings: AdmissionSettings) -> Iterator[str]:
    name, ours = pod["spec"].get("schedulerName"), settings.scheduler_name
    if ours and name and name != ours and not _is_replaced(name, settings):
        yield (
            f"spec.schedulerName is {name}: the pod starts only where that scheduler asks this one's extender; "
            f"leave it out, or write {ours}"
        )


def _is_replaced(name: str, settings: AdmissionSettings) -> bool:
    return not name or (name == DEFAULT_SCHEDULER and settings.force_scheduler)


def _fill_in(pod: Manifest, request: PodRequest, settings: AdmissionSettings) -> Manifest:
    filled = copy.deepcopy(pod)
    spec = filled["spec"]
    asked = {container.name: container for container in request.containers}
    for container in _containers(spec):
        if (asking := asked.get(container["name"])) is not None:
            _fill_in_amounts(container, _amounts_of(asking, request.dialect, settings.requests))
            _fill_in_variables(container, asking, settings)
        elif settings.hide_gpus:
            _set_variable(container, "NVIDIA_VISIBLE_DEVICES", "none")
    if settings.scheduler_name and _is_replaced(spec.get("schedulerName", ""), settings):
        spec["schedulerName"] = settings.scheduler_name
    if settings.runtime_class and not spec.get("runtimeClassName"):
        spec["runtimeClassName"] = settings.runtime_class
    if request.dialect is Dialect.HAMI and _TOLERATION not in (spec.get("tolerations") or ()):
        spec["tolerations"] = [*(spec.get("tolerations") or ()), dict(_TOLERATION)]
    return filled


def _amounts_of(asking: ContainerRequest, dialect: Dialect, settings: RequestSettings) -> Mapping[str, int]:
    """What the kubelet counts, by the name that it knows, whatever pods call it; and that a whole GPU is meant alone."""
    if dialect is Dialect.ALIYUN:
        return {names.RESOURCE_ALIYUN_MEM: asking.units * asking.gpus}
    is_alone = asking.memory_percent == WHOLE and asking.cores == WHOLE
    amounts = {settings.count: asking.gpus, names.RESOURCE_GPU: asking.gpus, settings.cores: WHOLE if is_alone else 0}
    return {name: amount for name, amount in amounts.items() if name and amount}


def _fill_in_amounts(container: Manifest, wanted: Mapping[str, int]) -> None:
    """What is not written yet, for whoever reads the pod."""
    resources = container.setdefault("resources", {})
    limits, requests = resources.setdefault("limits", {}), resources.setdefault("requests", {})
    for name, amount in wanted.items():
        if name not in limits:
            # Both alike, as the API server demands of such resources.
            limits[name] = requests.setdefault(name, str(amount))


def _fill_in_variables(container: Manifest, asking: ContainerRequest, settings: AdmissionSettings) -> None:
    if asking.priority is not None:
        _set_variable(container, "CUDA_TASK_PRIORITY", str(asking.priority))
    if settings.core_policy != CORE_POLICIES[0]:
        _set_variable(container, reserved.CORE_POLICY, settings.core_policy)


def _set_variable(container: Manifest, name: str, value: str) -> None:
    """Sets an environment variable, unless the writer of the pod has."""
    env = container.get("env") or []
    if all(variable.get("name") != name for variable in env):
        container["env"] = [*env, {"name": name, "value": value}]


def _containers(spec: Manifest) -> Iterator[dict[str, Any]]:
    yield from spec.get("initContainers") or ()
    yield from spec.get("containers") or ()
