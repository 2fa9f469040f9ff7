"""Pod statuses as a kubelet writes them, from the state of the pod's containers. Pure; called by the pod's worker."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from typing import Any

from gpushare.domain.manifests import Manifest
from gpushare.sandbox.node.states import ContainerState, PodState, Running, Terminated, Waiting

HOST_IP = "127.0.0.1"
"""Address of every simulated node: they are all on this machine."""


def initial(pod: Manifest, now: str) -> PodState:
    """The state of a pod that the node has just taken on."""
    spec = pod["spec"]
    first, others = ("PodInitializing", "PodInitializing") if spec.get("initContainers") else ("ContainerCreating", "")
    return PodState(
        init=[_waiting(container, first) for container in spec.get("initContainers") or ()],
        containers=[_waiting(container, others or first) for container in spec["containers"]],
        start_time=now,
        times={
            condition["type"]: (condition["status"], condition.get("lastTransitionTime") or now)
            for condition in (pod.get("status") or {}).get("conditions") or ()
        },
    )


def _waiting(container: Mapping[str, Any], reason: str) -> ContainerState:
    return ContainerState(name=container["name"], state=Waiting(reason=reason))


def build_rejection(pod: Manifest, reason: str, message: str, now: str) -> dict[str, Any]:
    """The status of a pod that the node does not take."""
    return {
        "phase": "Failed",
        "reason": reason,
        "message": f"Pod was rejected: {message}",
        "startTime": now,
        **_generation(pod),
    }


def build_status(pod: Manifest, state: PodState, now: str) -> dict[str, Any]:
    """The whole status; `now` becomes the time of conditions that have changed since the last call."""
    spec = pod["spec"]
    status: dict[str, Any] = {
        **_generation(pod),
        "phase": phase_of(state),
        "conditions": _conditions(pod, state, now),
        "hostIP": HOST_IP,
        "hostIPs": [{"ip": HOST_IP}],
        "startTime": state.start_time,
        "containerStatuses": list(map(_container_status, spec["containers"], state.containers)),
    }
    if state.init:
        status["initContainerStatuses"] = list(map(_container_status, spec["initContainers"], state.init))
    if state.pod_ip:
        status |= {"podIP": state.pod_ip, "podIPs": [{"ip": state.pod_ip}]}
    return status


def phase_of(state: PodState) -> str:
    """Pending until every container has been started once; then by whether any of them runs or will run again."""
    if state.ended:
        failed = any(container.exit_code for container in state.init)
        failed = failed or any(container.exit_code != 0 for container in state.containers)
        return "Failed" if failed else "Succeeded"
    begun = all(
        isinstance(container.state, Running) or container.last is not None or container.exit_code is not None
        for container in state.containers
    )
    return "Running" if state.initialized and begun else "Pending"


def _generation(pod: Manifest) -> dict[str, Any]:
    generation = pod["metadata"].get("generation")
    return {"observedGeneration": generation} if generation is not None else {}


def _conditions(pod: Manifest, state: PodState, now: str) -> list[dict[str, Any]]:
    phase = phase_of(state)
    ready = _readiness(state, phase)
    wanted = {
        "PodReadyToStartContainers": (bool(state.pod_ip) and not state.ended, "", ""),
        "Initialized": _initialization(state, phase),
        "Ready": ready,
        "ContainersReady": ready,
        "PodScheduled": (True, "", ""),
    }
    conditions = []
    for type_, (is_true, reason, message) in wanted.items():
        status = "True" if is_true else "False"
        if state.times.get(type_, ("",))[0] != status:
            state.times[type_] = status, now
        conditions.append(
            {
                "type": type_,
                "status": status,
                **({"reason": reason} if reason else {}),
                **({"message": message} if message else {}),
                **_generation(pod),
                "lastProbeTime": None,
                "lastTransitionTime": state.times[type_][1],
            }
        )
    return conditions


def _initialization(state: PodState, phase: str) -> tuple[bool, str, str]:
    if phase == "Succeeded":
        return True, "PodCompleted", ""
    if state.initialized:
        return True, "", ""
    names = " ".join(container.name for container in state.init if container.exit_code != 0 and not container.started)
    return False, "ContainersNotInitialized", f"containers with incomplete status: [{names}]"


def _readiness(state: PodState, phase: str) -> tuple[bool, str, str]:
    if phase in ("Succeeded", "Failed"):
        return False, "PodCompleted" if phase == "Succeeded" else "PodFailed", ""
    unready = [container.name for container in state.containers if not container.ready]
    if unready:
        return False, "ContainersNotReady", f"containers with unready status: [{' '.join(unready)}]"
    return True, "", ""


def _container_status(container: Mapping[str, Any], state: ContainerState) -> dict[str, Any]:
    image = full_image(container.get("image", ""))
    begun = bool(state.container_id)
    status: dict[str, Any] = {
        "name": state.name,
        "state": _state_json(state.state),
        "lastState": _state_json(state.last) if state.last is not None else {},
        "ready": state.ready,
        "restartCount": state.restarts,
        "image": image if begun else container.get("image", ""),
        "imageID": f"{_repository(image)}@sha256:{hashlib.sha256(image.encode()).hexdigest()}" if begun else "",
        "started": state.started,
    }
    if begun:
        status["containerID"] = state.container_id
    if resources := container.get("resources"):
        status["resources"] = resources
        if requests := resources.get("requests"):
            status["allocatedResources"] = requests
    if mounts := list(_mount_statuses(container)):
        status["volumeMounts"] = mounts
    return status


def _state_json(state: Waiting | Running | Terminated) -> dict[str, Any]:
    return {type(state).__name__.lower(): state.to_json()}


def _mount_statuses(container: Mapping[str, Any]) -> Iterable[dict[str, Any]]:
    for mount in container.get("volumeMounts") or ():
        status = {"name": mount["name"], "mountPath": mount["mountPath"]}
        if mount.get("readOnly"):
            status |= {"readOnly": True, "recursiveReadOnly": mount.get("recursiveReadOnly") or "Disabled"}
        yield status


def full_image(image: str) -> str:
    """An image with registry, repository and tag, as containerd names it: `nginx` is `docker.io/library/nginx:latest`."""
    first, slash, _ = image.partition("/")
    if not slash:
        image = f"docker.io/library/{image}"
    elif "." not in first and ":" not in first and first != "localhost":
        image = f"docker.io/{image}"
    return image if "@" in image or ":" in image.rpartition("/")[2] else f"{image}:latest"


def _repository(image: str) -> str:
    """Without tag or digest."""
    image = image.partition("@")[0]
    path, slash, name = image.rpartition("/")
    return f"{path}{slash}{name.partition(':')[0]}"


def image_name(image: str) -> str:
    """The last word of the repository, by which we know our own image: `gpu-sharing-operator`."""
    return _repository(image).rpartition("/")[2]
