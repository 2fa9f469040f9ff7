"""Pods on simulated nodes: what their containers see, how they live and end."""

from __future__ import annotations

import asyncio
import base64
import itertools
import json
from collections.abc import AsyncIterator
from typing import Any

import pytest

from gpushare.domain import manifests
from gpushare.errors import ClusterRefused
from gpushare.kube import credentials
from gpushare.kube.lean import LeanCluster
from gpushare.sandbox.node import running as runs
from gpushare.sandbox.node.specs import Invocation
from support.simulated_nodes import QUICK, Nodes, container, running

OURS = "registry.example/gpu-sharing-operator:1"


class Programs:
    """Programs of our image, as these tests need them; remembers how they were started."""

    def __init__(self) -> None:
        self.calls: asyncio.Queue[Invocation] = asyncio.Queue()
        self.codes = itertools.repeat(0)

    async def serve(self, call: Invocation) -> int:
        """Runs until it is stopped."""
        call.log.info("serving", extra={"argv": list(call.argv)})
        self.calls.put_nowait(call)
        await call.stop.wait()
        call.log.info("stopped")
        return 0

    async def end(self, call: Invocation) -> int:
        """Ends at once, each time with the next code."""
        self.calls.put_nowait(call)
        return next(self.codes)

    async def deaf(self, call: Invocation) -> int:
        """Does not listen to SIGTERM."""
        self.calls.put_nowait(call)
        await asyncio.Event().wait()
        return 0

    async def broken(self, call: Invocation) -> int:
        """Ends with a traceback."""
        call.log.info("thinking")
        raise RuntimeError("out of ideas")

    async def quits(self, call: Invocation) -> int:
        """Ends as scripts do."""
        call.log.info("wrong usage")
        raise SystemExit(2)

    async def listen(self, call: Invocation) -> int:
        """Answers a readiness probe: 503, then 200."""
        answers = itertools.chain([b"503 Not Yet"], itertools.repeat(b"200 OK"))

        async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await reader.readuntil(b"\r\n\r\n")
            writer.write(b"HTTP/1.1 " + next(answers) + b"\r\nContent-Length: 0\r\n\r\n")
            writer.close()

        server = await asyncio.start_server(answer, call.environ["POD_IP"], 8080)
        async with server:
            self.calls.put_nowait(call)
            await call.stop.wait()
        return 0


@pytest.fixture
def programs() -> Programs:
    return Programs()


@pytest.fixture
async def nodes(programs: Programs) -> AsyncIterator[Nodes]:
    names = ("serve", "end", "deaf", "broken", "quits", "listen")
    async with running("gpu01", programs={name: getattr(programs, name) for name in names}) as found:
        yield found


def ours(program: str, *args: str, **more: Any) -> dict[str, Any]:
    return container(image=OURS, args=[program, *args], **more)


def state_of(pod: dict[str, Any], key: str = "state") -> dict[str, Any]:
    statuses = (pod.get("status") or {}).get("containerStatuses") or [{}]
    return statuses[0].get(key) or {}


async def test_program(nodes: Nodes, programs: Programs) -> None:
    """A pod of our image runs the program that its arguments name, with its environment and its mounts."""
    await nodes.cluster.create(
        {
            "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "settings", "namespace": "default"},
            "data": {"mode": "fast", "file.yaml": "a: 1"},
        }
    )  # fmt: skip
    await nodes.run(
        "agent",
        containers=[
            ours(
                "serve",
                "--node=$(NODE_NAME)",
                env=[
                    {"name": "NODE_NAME", "valueFrom": {"fieldRef": {"fieldPath": "spec.nodeName"}}},
                    {"name": "MODE", "valueFrom": {"configMapKeyRef": {"name": "settings", "key": "mode"}}},
                ],
                volumeMounts=[
                    {"name": "plugins", "mountPath": "/var/lib/kubelet/device-plugins"},
                    {"name": "config", "mountPath": "/etc/app"},
                    {"name": "scratch", "mountPath": "/scratch"},
                ],
            )
        ],
        volumes=[
            {"name": "plugins", "hostPath": {"path": "/var/lib/kubelet/device-plugins", "type": "Directory"}},
            {"name": "config", "configMap": {"name": "settings"}},
            {"name": "scratch", "emptyDir": {}},
        ],
    )
    call = await programs.calls.get()

    assert (call.argv, call.node, call.environ["MODE"]) == (("--node=gpu01",), "gpu01", "fast")
    assert (call.root / "var/lib/kubelet/device-plugins/kubelet.sock").is_socket()
    assert (call.root / "etc/app/file.yaml").read_text() == "a: 1"
    assert list((call.root / "scratch").iterdir()) == []
    assert len(str(call.root)) <= 40
    pod = await nodes.until_phase("agent", "Running")
    assert state_of(pod).keys() == {"running"}
    assert nodes.log("agent", "main") == ["I serving argv=['--node=gpu01']"]


async def test_config_map_changes(nodes: Nodes, programs: Programs) -> None:
    """A running program finds the new content; that of a ConfigMap that has gone stays."""
    metadata = {"name": "settings", "namespace": "default"}
    await nodes.cluster.create({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"a": "1"}})
    await nodes.run(
        "agent",
        containers=[ours("serve", volumeMounts=[{"name": "config", "mountPath": "/etc/app"}])],
        volumes=[{"name": "config", "configMap": {"name": "settings"}}],
    )
    folder = (await programs.calls.get()).root / "etc/app"
    await nodes.cluster.patch(manifests.CONFIG_MAP, "settings", {"data": {"a": None, "b": "2"}}, "default")
    async with asyncio.timeout(60):
        while {path.name: path.read_text() for path in folder.iterdir()} != {"b": "2"}:  # noqa: ASYNC110 - files
            await asyncio.sleep(0.02)
    await nodes.cluster.delete(manifests.CONFIG_MAP, "settings", "default")
    await asyncio.sleep(0.2)  # nothing must come

    assert (folder / "b").read_text() == "2"


async def test_credentials(nodes: Nodes, programs: Programs) -> None:
    """A program finds the API server as in any cluster, and is its pod's service account there."""
    await nodes.run("agent", containers=[ours("serve")])
    call = await programs.calls.get()
    cluster = LeanCluster(credentials.in_cluster(call.root, call.environ))
    try:
        with pytest.raises(ClusterRefused, match='User "system:serviceaccount:default:default" cannot list'):
            await cluster.list(manifests.NODE)
    finally:
        await cluster.close()

    folder = call.root / "var/run/secrets/kubernetes.io/serviceaccount"
    payload = (folder / "token").read_text().split(".")[1]
    claims = json.loads(base64.urlsafe_b64decode(payload + "=" * (-len(payload) % 4)))
    assert claims["kubernetes.io"]["pod"]["name"] == "agent"
    assert (folder / "namespace").read_text() == "default"


async def test_graceful_end(nodes: Nodes, programs: Programs) -> None:
    """Deletion stops the program; only when it has ended does the pod go, and nothing of it stays on the node."""
    await nodes.run("agent", containers=[ours("serve")])
    call = await programs.calls.get()
    await nodes.until_phase("agent", "Running")
    await nodes.cluster.delete(manifests.POD, "agent", "default")
    await nodes.until_gone("agent")

    assert call.stop.is_set()
    assert not call.root.exists()
    event = await nodes.until_event("Killing")
    assert (event["message"], event["involvedObject"]["fieldPath"]) == (
        "Stopping container main",
        "spec.containers{main}",
    )


async def test_deaf_program(nodes: Nodes, programs: Programs) -> None:
    """Who does not listen is killed when its grace period is over."""
    await nodes.run("agent", containers=[ours("deaf")], terminationGracePeriodSeconds=1)
    await programs.calls.get()
    await nodes.until_phase("agent", "Running")
    gone = asyncio.create_task(
        nodes.until(manifests.POD, "agent", lambda pod: state_of(pod).get("terminated"), "default")
    )
    await nodes.cluster.delete(manifests.POD, "agent", "default")

    assert state_of(await gone)["terminated"]["exitCode"] == runs.SIGKILL_CODE
    await nodes.until_gone("agent")


async def test_events_of_a_start(nodes: Nodes) -> None:
    """The three that everybody knows, under the kubelet's name."""
    await nodes.run("web", containers=[container()])
    texts = {reason: (await nodes.until_event(reason))["message"] for reason in ("Pulled", "Created", "Started")}
    assert texts == {
        "Pulled": 'Container image "nginx:1.29" already present on machine and can be accessed by the pod',
        "Created": "Container created",
        "Started": "Container started",
    }


async def test_crash_loop(nodes: Nodes, programs: Programs) -> None:
    """The first restart comes at once, the next ones after growing pauses; the output of the last run is kept."""
    programs.codes = itertools.repeat(3)
    await nodes.run("agent", containers=[ours("end")])
    pod = await nodes.until(
        manifests.POD,
        "agent",
        lambda pod: state_of(pod).get("waiting", {}).get("reason") == "CrashLoopBackOff",
        "default",
    )

    uid = pod["metadata"]["uid"]
    assert state_of(pod)["waiting"]["message"].endswith(f"restarting failed container=main pod=agent_default({uid})")
    assert state_of(pod, "lastState")["terminated"]["exitCode"] == 3
    assert pod["status"]["phase"] == "Running"
    event = await nodes.until_event("BackOff")
    assert event["message"] == f"Back-off restarting failed container main in pod agent_default({uid})"
    await nodes.until(
        manifests.POD, "agent", lambda pod: (pod["status"]["containerStatuses"][0]["restartCount"]) >= 3, "default"
    )


@pytest.mark.parametrize(
    ("program", "code", "last"),
    [("broken", 1, "RuntimeError: out of ideas"), ("quits", 2, "I wrong usage")],
)
async def test_bad_ends(nodes: Nodes, program: str, code: int, last: str) -> None:
    """A program that breaks ends with 1 and a traceback in its log, one that exits with its own code."""
    await nodes.run("agent", containers=[ours(program)], restartPolicy="Never")
    pod = await nodes.until_phase("agent", "Failed")

    assert state_of(pod)["terminated"]["exitCode"] == code
    assert nodes.log("agent", "main")[-1] == last


async def test_unknown_program(nodes: Nodes) -> None:
    """Arguments that our image does not know fail the start, and say what it knows."""
    await nodes.run("agent", containers=[ours("dance")], restartPolicy="Never")
    pod = await nodes.until_phase("agent", "Failed")

    ended = state_of(pod)["terminated"]
    assert (ended["exitCode"], ended["reason"]) == (128, "StartError")
    assert ended["message"].startswith('exec: "dance": the sandbox has no such program in this image; it has broken')


async def test_missing_volume(nodes: Nodes) -> None:
    """A pod waits for a ConfigMap that it mounts, and starts when it is there."""
    await nodes.run(
        "web",
        containers=[container(volumeMounts=[{"name": "v", "mountPath": "/v"}])],
        volumes=[{"name": "v", "configMap": {"name": "late"}}],
    )
    event = await nodes.until_event("FailedMount")
    assert event["message"] == 'MountVolume.SetUp failed for volume "v" : configmap "late" not found'
    pod = await nodes.cluster.get(manifests.POD, "web", "default")
    assert pod is not None
    assert state_of(pod) == {"waiting": {"reason": "ContainerCreating"}}

    await nodes.cluster.create(
        {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": "late", "namespace": "default"},
            "data": {"k": "v"},
        }
    )
    await nodes.until_phase("web", "Running")


async def test_missing_key(nodes: Nodes) -> None:
    """A container waits for what its environment refers to."""
    env = [{"name": "X", "valueFrom": {"secretKeyRef": {"name": "late", "key": "word"}}}]
    await nodes.run("web", containers=[container(env=env)])
    pod = await nodes.until(
        manifests.POD, "web", lambda pod: state_of(pod).get("waiting", {}).get("message"), "default"
    )
    assert state_of(pod)["waiting"] == {"reason": "CreateContainerConfigError", "message": 'secret "late" not found'}
    assert (await nodes.until_event("Failed"))["message"] == 'Error: secret "late" not found'

    await nodes.cluster.create(
        {
            "apiVersion": "v1", "kind": "Secret", "metadata": {"name": "late", "namespace": "default"},
            "data": {"word": "c2VzYW1l"},
        }
    )  # fmt: skip
    await nodes.until_phase("web", "Running")


VECTOR_ADD = "nvcr.io/nvidia/k8s/cuda-sample:vectoradd-cuda12.5.0"


@pytest.mark.parametrize(
    ("image", "policy", "phase", "last"),
    [
        pytest.param(VECTOR_ADD, "Never", "Failed", "no CUDA-capable device is detected", id="no GPU"),
        pytest.param(VECTOR_ADD, "Always", "Running", "no CUDA-capable device is detected", id="in a loop"),
        pytest.param("busybox", "Never", "Running", "no device was allocated", id="runs until deleted"),
    ],
)
async def test_pods_that_only_seem_to_run(nodes: Nodes, image: str, policy: str, phase: str, last: str) -> None:
    """The CUDA sample fails without a GPU, anything else goes on."""
    await nodes.run("pod", containers=[container(image=image)], restartPolicy=policy)
    await nodes.until_phase("pod", phase)
    assert last in nodes.log("pod", "main")[-1]


async def test_pods_of_jobs_end(nodes: Nodes) -> None:
    """After a moment, and well."""
    template = {"spec": {"restartPolicy": "Never", "containers": [container()]}}
    job = await nodes.cluster.create(
        {
            "apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "j", "namespace": "default"},
            "spec": {"template": template},
        }
    )  # fmt: skip
    owner = {"apiVersion": "batch/v1", "kind": "Job", "name": "j", "uid": job["metadata"]["uid"]}
    await nodes.run("pod", metadata={"ownerReferences": [owner]}, containers=[container()], restartPolicy="Never")
    pod = await nodes.until_phase("pod", "Succeeded")
    assert state_of(pod)["terminated"]["reason"] == "Completed"


async def test_init_containers(nodes: Nodes, programs: Programs) -> None:
    """One after another; the pod's containers wait for them, and a sidecar runs on beside them."""
    sidecar = container("sidecar", restartPolicy="Always")
    first = container("first", image=OURS, args=["end"])
    await nodes.run("pod", initContainers=[first, sidecar], containers=[ours("serve")])
    pod = await nodes.until_phase("pod", "Running")

    states = [next(iter(status["state"])) for status in pod["status"]["initContainerStatuses"]]
    assert states == ["terminated", "running"]
    assert [(await programs.calls.get()).log.name for _ in range(2)] == ["pod.first", "pod.main"]


async def test_failed_init_container(nodes: Nodes, programs: Programs) -> None:
    """Where nothing is restarted, it ends the pod before it has begun."""
    programs.codes = itertools.repeat(2)
    first = container("first", image=OURS, args=["end"])
    await nodes.run("pod", initContainers=[first], containers=[container()], restartPolicy="Never")
    pod = await nodes.until_phase("pod", "Failed")
    assert state_of(pod) == {"waiting": {"reason": "PodInitializing"}}


async def test_readiness(nodes: Nodes, programs: Programs) -> None:
    """A pod is ready when its program says so, on the pod's own address."""
    env = [{"name": "POD_IP", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}}]
    probe = {"httpGet": {"path": "/readyz", "port": "http"}, "periodSeconds": 1}
    ports = [{"name": "http", "containerPort": 8080}]
    await nodes.run("agent", containers=[ours("listen", env=env, readinessProbe=probe, ports=ports)])

    def conditions(pod: dict[str, Any]) -> dict[str, str]:
        return {one["type"]: one["status"] for one in (pod.get("status") or {}).get("conditions") or ()}

    unready = await nodes.until(manifests.POD, "agent", lambda pod: state_of(pod).get("running"), "default")
    assert conditions(unready)["Ready"] == "False"
    ready = await nodes.until(manifests.POD, "agent", lambda pod: conditions(pod).get("Ready") == "True", "default")
    assert "message" not in next(one for one in ready["status"]["conditions"] if one["type"] == "Ready")


async def test_liveness(nodes: Nodes, programs: Programs) -> None:
    """A program that cannot be reached is started anew."""
    probe = {"tcpSocket": {"port": 9}, "periodSeconds": 1, "failureThreshold": 1}
    await nodes.run("agent", containers=[ours("serve", livenessProbe=probe)])
    first = await programs.calls.get()
    second = await programs.calls.get()

    assert first.stop.is_set()
    assert not second.stop.is_set()
    assert (await nodes.until_event("Unhealthy"))["message"].startswith("Liveness probe failed: dial tcp 127.")
    killing = await nodes.until_event("Killing")
    assert killing["message"] == "Container main failed liveness probe, will be restarted"


async def test_programs_end_with_their_node(programs: Programs) -> None:
    """When the nodes go, every program is asked to end, and the API server keeps the pods as they were."""
    async with running("gpu01", programs={"serve": programs.serve}, pace=QUICK) as nodes:
        await nodes.run("agent", containers=[ours("serve")])
        call = await programs.calls.get()
        await nodes.until_phase("agent", "Running")
    assert call.stop.is_set()
