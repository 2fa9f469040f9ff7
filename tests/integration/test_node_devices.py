"""The simulated kubelet's device manager over real gRPC sockets."""

# ruff: noqa: ARG002 - the parameters are those of the protocol

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Sequence

import grpc
import pytest

from gpushare.domain import manifests
from gpushare.domain.pools import Pool
from gpushare.errors import KubeletError
from gpushare.host.files import write_atomically
from gpushare.kubelet import podresources, podresources_pb2_grpc, registering
from gpushare.kubelet import podresources_pb2 as pb
from gpushare.kubelet.values import ContainerDevices, Registration
from gpushare.sandbox.node import plugins
from gpushare.sharing.responses import ContainerAnswer
from support.simulated_nodes import Answers, Nodes, container, pool_of, running

GPU = "nvidia.com/gpu"


@pytest.fixture
async def nodes() -> AsyncIterator[Nodes]:
    async with running("gpu01") as found:
        yield found


def holders(nodes: Nodes) -> tuple[ContainerDevices, ...]:
    """Who holds what, as the kubelet's pod resources socket says."""
    return podresources.read_holders(nodes.folder("gpu01") / plugins.POD_RESOURCES)


async def test_lists_reach_the_node(nodes: Nodes) -> None:
    """Registration, health, growth and retirement each show on the Node."""
    plugin = await nodes.plug("gpu01", pool_of(GPU, "a", "b"))
    await nodes.until_amounts("gpu01", GPU, "2", "2")
    plugin.offer(pool_of(GPU, "a", sick=("b",)))
    await nodes.until_amounts("gpu01", GPU, "2", "1")
    plugin.offer(pool_of(GPU, *"abcd"))
    await nodes.until_amounts("gpu01", GPU, "4", "4")
    await asyncio.to_thread(plugin.retire)
    await nodes.until_amounts("gpu01", GPU, "0", "0")


async def test_two_resources(nodes: Nodes) -> None:
    """Each resource has its own plugin, and a container may have both."""
    await nodes.plug("gpu01", pool_of(GPU, "a"))
    await nodes.plug("gpu01", pool_of("nvidia.com/mig-1g.5gb", "m1", "m2"))
    await nodes.until_amounts("gpu01", "nvidia.com/mig-1g.5gb", "2", "2")
    limits = {GPU: "1", "nvidia.com/mig-1g.5gb": "2"}
    await nodes.run("both", containers=[container(resources={"limits": limits})])
    await nodes.until_phase("both", "Running")

    assert {(one.resource, one.ids) for one in await asyncio.to_thread(holders, nodes)} == {
        (GPU, ("a",)),
        ("nvidia.com/mig-1g.5gb", ("m1", "m2")),
    }


async def test_allocation(nodes: Nodes) -> None:
    """A pod gets what its plugin prefers; who holds it is told; with the pod it goes."""
    answers = Answers(prefers=("c", "a"))
    await nodes.plug("gpu01", pool_of(GPU, *"abc"), answers)
    await nodes.until_amounts("gpu01", GPU, "3", "3")
    await nodes.run("user", containers=[container(gpus=2)])
    await nodes.until_phase("user", "Running")

    assert "sandbox: env GIVEN=a,c" in nodes.log("user", "main")
    (asked,) = answers.preferences
    assert (asked.available, asked.must_include, asked.size) == (("a", "b", "c"), (), 2)
    (held,) = await asyncio.to_thread(holders, nodes)
    assert (held.namespace, held.pod, held.container, held.resource) == ("default", "user", "main", GPU)
    assert sorted(held.ids) == ["a", "c"]

    await nodes.cluster.delete(manifests.POD, "user", "default")
    await nodes.until_gone("user")
    assert await asyncio.to_thread(holders, nodes) == ()


async def test_pod_resources_of_one_pod(nodes: Nodes) -> None:
    """Monitoring asks for one pod, and for all healthy devices."""
    await nodes.plug("gpu01", pool_of(GPU, "a", "b", sick=("c",)))
    await nodes.until_amounts("gpu01", GPU, "3", "2")
    await nodes.run("user", containers=[container(gpus=1)])
    await nodes.until_phase("user", "Running")

    def ask() -> tuple[list[str], list[str], str]:
        with grpc.insecure_channel(f"unix:{nodes.folder('gpu01') / plugins.POD_RESOURCES}") as channel:
            stub = podresources_pb2_grpc.PodResourcesListerStub(channel)
            pod = stub.Get(pb.GetPodResourcesRequest(pod_name="user", pod_namespace="default")).pod_resources
            every = stub.GetAllocatableResources(pb.AllocatableResourcesRequest()).devices
            with pytest.raises(grpc.RpcError) as missing:
                stub.Get(pb.GetPodResourcesRequest(pod_name="other", pod_namespace="default"))
            return list(pod.containers[0].devices[0].device_ids), list(every[0].device_ids), missing.value.details()

    assert await asyncio.to_thread(ask) == (["a"], ["a", "b"], "pod other in namespace default not found")


async def test_init_containers_lend_their_devices(nodes: Nodes) -> None:
    """The container after them must include what they had."""
    answers = Answers()
    await nodes.plug("gpu01", pool_of(GPU, *"abc"), answers)
    await nodes.until_amounts("gpu01", GPU, "3", "3")
    await nodes.run("pod", initContainers=[container("prepare", gpus=1)], containers=[container(gpus=3)])
    await nodes.until_phase("pod", "Running")

    assert [(asked.must_include, asked.size) for asked in answers.preferences] == [((), 1), (("a",), 3)]
    assert "sandbox: env GIVEN=a,b,c" in nodes.log("pod", "main")


async def test_too_many(nodes: Nodes) -> None:
    """A pod that came past the scheduler is refused in a kubelet's words, and others are not disturbed."""
    await nodes.plug("gpu01", pool_of(GPU, "a", "b"))
    await nodes.until_amounts("gpu01", GPU, "2", "2")
    await nodes.run("first", containers=[container(gpus=1)])
    await nodes.until_phase("first", "Running")
    await nodes.run("second", containers=[container(gpus=2)])
    failed = await nodes.until_phase("second", "Failed")

    text = (
        "Allocate failed due to requested number of devices unavailable for nvidia.com/gpu. "
        "Requested: 2, Available: 1, which is unexpected"
    )
    assert failed["status"]["reason"] == "UnexpectedAdmissionError"
    assert failed["status"]["message"] == f"Pod was rejected: {text}"
    event = await nodes.until_event("UnexpectedAdmissionError")
    assert (event["message"], event["type"], event["source"]) == (
        text,
        "Warning",
        {"component": "kubelet", "host": "gpu01"},
    )
    (held,) = await asyncio.to_thread(holders, nodes)
    assert held.pod == "first"


async def test_refusal_of_the_plugin(nodes: Nodes) -> None:
    """The plugin's own words reach the pod, as Go's gRPC wraps them; its devices stay free."""
    answers = Answers(refusal="request for 'nvidia.com/gpu: 2' too large: maximum request size is 1")
    await nodes.plug("gpu01", pool_of(GPU, "a", "b"), answers)
    await nodes.until_amounts("gpu01", GPU, "2", "2")
    await nodes.run("greedy", containers=[container(gpus=2)])
    failed = await nodes.until_phase("greedy", "Failed")

    assert failed["status"]["message"] == (
        "Pod was rejected: Allocate failed due to rpc error: code = Unknown desc = "
        f"{answers.refusal}, which is unexpected"
    )
    answers.refusal = ""
    await nodes.run("again", containers=[container(gpus=2)])
    await nodes.until_phase("again", "Running")


class CdiAnswers(Answers):
    """Names devices by CDI."""

    def allocate(self, pool: Pool, ids: Sequence[str]) -> ContainerAnswer:
        return ContainerAnswer(cdi_devices=tuple(f"example.com/gpu={id_}" for id_ in ids))


async def test_cdi_names(nodes: Nodes) -> None:
    """A container whose devices nobody has described yet is created once somebody has, as with containerd."""
    await nodes.plug("gpu01", pool_of(GPU, "a"), CdiAnswers())
    await nodes.until_amounts("gpu01", GPU, "1", "1")
    await nodes.run("user", containers=[container(gpus=1)])
    event = await nodes.until_event("Failed")
    assert event["message"] == (
        "Error: failed to create containerd container: CDI device injection failed: "
        "unresolvable CDI devices example.com/gpu=a"
    )

    device = {"name": "a", "containerEdits": {"deviceNodes": [{"path": "/dev/nvidia0"}]}}
    folder = nodes.folder("gpu01") / "var/run/cdi"
    folder.mkdir(parents=True)
    write_atomically(folder / "a.json", json.dumps({"kind": "example.com/gpu", "devices": [device]}))
    await nodes.until_phase("user", "Running")
    assert nodes.log("user", "main")[-2:] == [
        "sandbox: CDI device example.com/gpu=a",
        "sandbox: by CDI device /dev/nvidia0",
    ]


async def test_plugin_that_dies(nodes: Nodes) -> None:
    """Its devices can no longer be had, but are still counted; the one that follows takes over."""
    plugin = await nodes.plug("gpu01", pool_of(GPU, "a", "b"))
    await nodes.until_amounts("gpu01", GPU, "2", "2")
    await asyncio.to_thread(plugin.stop)
    await nodes.until_amounts("gpu01", GPU, "2", "0")
    await nodes.run("late", containers=[container(gpus=1)])
    failed = await nodes.until_phase("late", "Failed")
    assert "no healthy devices present; cannot allocate unhealthy devices" in failed["status"]["message"]

    await nodes.plug("gpu01", pool_of(GPU, "x", "y", "z"))
    await nodes.until_amounts("gpu01", GPU, "3", "3")


async def test_kubelet_restart(nodes: Nodes) -> None:
    """Sockets are made anew, resources count 0 until the plugin is back, and what pods hold they keep."""
    plugin = await nodes.plug("gpu01", pool_of(GPU, "a", "b"))
    await nodes.until_amounts("gpu01", GPU, "2", "2")
    await nodes.run("user", containers=[container(gpus=1)])
    await nodes.until_phase("user", "Running")

    await nodes.fleet.nodes["gpu01"].restart()
    assert not plugin.socket.exists(), "a kubelet that starts removes the sockets of plugins"
    await nodes.until_amounts("gpu01", GPU, "0", "0")
    (held,) = await asyncio.to_thread(holders, nodes)
    assert (held.pod, held.ids) == ("user", ("a",))
    checkpoint = json.loads((plugin.socket.parent / plugins.CHECKPOINT).read_text())
    assert [entry["DeviceIDs"] for entry in checkpoint["Data"]["PodDeviceEntries"]] == [{"-1": ["a"]}]

    await asyncio.to_thread(plugin.serve)
    await asyncio.to_thread(registering.register, plugin.socket.parent / "kubelet.sock", plugin.registration)
    await nodes.until_amounts("gpu01", GPU, "2", "2")
    await nodes.run("next", containers=[container(gpus=1)])
    await nodes.until_phase("next", "Running")
    assert "sandbox: env GIVEN=b" in nodes.log("next", "main")


@pytest.mark.parametrize(
    ("registration", "message"),
    [
        pytest.param(
            Registration(endpoint="x.sock", resource=GPU, version="v1alpha9"),
            'requested API version "v1alpha9" is not supported by kubelet',
            id="version",
        ),
        pytest.param(
            Registration(endpoint="x.sock", resource="gpu"), 'the ResourceName "gpu" is invalid', id="resource"
        ),
        pytest.param(
            Registration(endpoint="x.sock", resource=GPU), "failed to dial device plugin", id="nobody listens"
        ),
    ],
)
async def test_registrations_that_are_refused(nodes: Nodes, registration: Registration, message: str) -> None:
    """A plugin reads why the kubelet does not take it."""
    socket = nodes.folder("gpu01") / plugins.FOLDER / "kubelet.sock"
    with pytest.raises(KubeletError, match=message):
        await asyncio.to_thread(registering.register, socket, registration)
