"""Pod statuses, as a kubelet would write them."""

from __future__ import annotations

from typing import Any

import pytest

from gpushare.sandbox.node import statuses
from gpushare.sandbox.node.states import PodState, Running, Terminated, Waiting

THEN, NOW = "2026-01-01T00:00:00Z", "2026-01-01T00:00:05Z"


def pod_of(*names: str, init: tuple[str, ...] = ()) -> dict[str, Any]:
    spec: dict[str, Any] = {"containers": [{"name": name, "image": "nginx"} for name in names]}
    if init:
        spec["initContainers"] = [{"name": name, "image": "busybox"} for name in init]
    return {"metadata": {"name": "p", "namespace": "ns", "uid": "u", "generation": 2}, "spec": spec}


def ended(code: int) -> Terminated:
    return Terminated(exit_code=code, started_at=THEN, finished_at=NOW, container_id="containerd://1")


def conditions(pod: dict[str, Any], state: PodState, now: str = NOW) -> dict[str, str]:
    found = statuses.build_status(pod, state, now)["conditions"]
    return {one["type"]: " ".join(filter(None, (one["status"], one.get("reason", "")))) for one in found}


@pytest.mark.parametrize(
    ("states", "over", "expected"),
    [
        pytest.param([Waiting(reason="ContainerCreating")] * 2, False, "Pending", id="nothing started"),
        pytest.param([Running(started_at=THEN), Waiting(reason="x")], False, "Pending", id="one not started yet"),
        pytest.param([Running(started_at=THEN)] * 2, False, "Running", id="all run"),
        pytest.param([Running(started_at=THEN), ended(0)], False, "Running", id="one has ended"),
        pytest.param([ended(0), ended(0)], True, "Succeeded", id="all ended well"),
        pytest.param([ended(0), ended(3)], True, "Failed", id="one ended badly"),
        pytest.param([ended(0), Waiting(reason="x")], True, "Failed", id="one never started"),
    ],
)
def test_phase(states: list[Any], over: bool, expected: str) -> None:
    """What `kubectl get pods` shows first."""
    pod = pod_of("a", "b")
    state = statuses.initial(pod, THEN)
    for container, one in zip(state.containers, states, strict=True):
        container.state = one
    state.ended = over
    assert statuses.phase_of(state) == expected


def test_restarting_container() -> None:
    """A container between two runs keeps its pod Running."""
    state = statuses.initial(pod_of("a"), THEN)
    state.containers[0].state = Waiting(reason="CrashLoopBackOff")
    state.containers[0].last = ended(1)
    assert statuses.phase_of(state) == "Running"


def test_new_pod() -> None:
    """A pod with init containers waits for them; nothing is ready."""
    pod = pod_of("a", "b", init=("first", "second"))
    state = statuses.initial(pod, THEN)
    status = statuses.build_status(pod, state, NOW)

    assert status["initContainerStatuses"][0]["state"] == {"waiting": {"reason": "PodInitializing"}}
    assert conditions(pod, state) == {
        "PodReadyToStartContainers": "False",
        "Initialized": "False ContainersNotInitialized",
        "Ready": "False ContainersNotReady",
        "ContainersReady": "False ContainersNotReady",
        "PodScheduled": "True",
    }
    messages = [one.get("message") for one in status["conditions"]]
    assert "containers with incomplete status: [first second]" in messages
    assert "containers with unready status: [a b]" in messages
    assert status["observedGeneration"] == 2


def test_running_pod() -> None:
    """Ready when all its containers are, with an address and the names of the runtime."""
    pod = pod_of("a")
    state = statuses.initial(pod, THEN)
    state.pod_ip = "10.244.0.3"
    container = state.containers[0]
    container.state, container.container_id = Running(started_at=THEN), "containerd://1"
    container.ready = container.started = True
    status = statuses.build_status(pod, state, NOW)

    assert set(conditions(pod, state).values()) == {"True"}
    assert (status["podIP"], status["podIPs"], status["hostIP"]) == ("10.244.0.3", [{"ip": "10.244.0.3"}], "127.0.0.1")
    assert status["containerStatuses"][0]["image"] == "docker.io/library/nginx:latest"
    assert status["containerStatuses"][0]["state"] == {"running": {"startedAt": THEN}}


def test_ended_pod() -> None:
    """A pod that has ended is not ready, and says why."""
    pod = pod_of("a")
    state = statuses.initial(pod, THEN)
    state.containers[0].state, state.ended = ended(0), True

    assert conditions(pod, state)["Ready"] == "False PodCompleted"
    assert (
        statuses.build_status(pod, state, NOW)["containerStatuses"][0]["state"]["terminated"]["reason"] == "Completed"
    )
    state.containers[0].state = ended(1)
    assert conditions(pod, state)["Ready"] == "False PodFailed"


def test_transition_times() -> None:
    """A condition's time changes with its status only, and goes on from what the API server had."""
    pod = pod_of("a")
    pod["status"] = {"conditions": [{"type": "PodScheduled", "status": "True", "lastTransitionTime": THEN}]}
    state = statuses.initial(pod, THEN)

    def times(now: str) -> dict[str, str]:
        found = statuses.build_status(pod, state, now)["conditions"]
        return {one["type"]: one["lastTransitionTime"] for one in found}

    assert times(THEN)["PodScheduled"] == THEN
    state.containers[0].ready = True
    later = times(NOW)
    assert (later["PodScheduled"], later["Ready"], later["Initialized"]) == (THEN, NOW, THEN)


def test_rejection() -> None:
    """The form in which a kubelet refuses a pod."""
    status = statuses.build_rejection(pod_of("a"), "UnexpectedAdmissionError", "Allocate failed due to x", NOW)
    assert status == {
        "phase": "Failed",
        "reason": "UnexpectedAdmissionError",
        "message": "Pod was rejected: Allocate failed due to x",
        "startTime": NOW,
        "observedGeneration": 2,
    }


@pytest.mark.parametrize(
    ("image", "full", "name"),
    [
        ("nginx", "docker.io/library/nginx:latest", "nginx"),
        ("nginx:1.29", "docker.io/library/nginx:1.29", "nginx"),
        ("me/tool", "docker.io/me/tool:latest", "tool"),
        ("localhost/gpu-sharing-operator:dev", "localhost/gpu-sharing-operator:dev", "gpu-sharing-operator"),
        (
            "reg.example:5000/a/gpu-sharing-operator:1",
            "reg.example:5000/a/gpu-sharing-operator:1",
            "gpu-sharing-operator",
        ),
        ("reg.example/a/b@sha256:00", "reg.example/a/b@sha256:00", "b"),
    ],
)
def test_images(image: str, full: str, name: str) -> None:
    """The runtime's name of an image, and the word by which we know our own."""
    assert statuses.full_image(image) == full
    assert statuses.image_name(image) == name
