"""Values to messages and back."""

from __future__ import annotations

import hypothesis.strategies as st
from hypothesis import given

from gpushare.kubelet import podresources_pb2, wire
from gpushare.kubelet.values import ContainerDevices, Device, PluginOptions, PreferenceRequest, Registration
from gpushare.sharing.responses import ContainerAnswer, DeviceNode, Mount

from .conftest import pool_of

text = st.text(max_size=8)
answers = st.builds(
    ContainerAnswer,
    envs=st.dictionaries(text, text, max_size=2),
    mounts=st.lists(st.builds(Mount, container_path=text, host_path=text, read_only=st.booleans()), max_size=2).map(
        tuple
    ),
    devices=st.lists(st.builds(DeviceNode, container_path=text, host_path=text, permissions=text), max_size=2).map(
        tuple
    ),
    annotations=st.dictionaries(text, text, max_size=2),
    cdi_devices=st.lists(text, max_size=2).map(tuple),
)


@given(answers)
def test_answers(answer: ContainerAnswer) -> None:
    """No part of an answer is lost."""
    assert answer == wire.answer_of_message(wire.message_of_answer(answer))


@given(st.builds(Registration, endpoint=text, resource=text, options=st.builds(PluginOptions), version=text))
def test_registrations(registration: Registration) -> None:
    """The kubelet is told what the plugin says."""
    assert registration == wire.registration_of_message(wire.message_of_registration(registration))


@given(
    st.builds(
        PreferenceRequest,
        available=st.lists(text, max_size=3).map(tuple),
        must_include=st.lists(text, max_size=3).map(tuple),
        size=st.integers(0, 2**31 - 1),
    )
)
def test_preferences(request: PreferenceRequest) -> None:
    """Questions arrive as asked."""
    assert request == wire.preference_of_message(wire.message_of_preference(request))


def test_list_of_pool() -> None:
    """Shares become devices with health and NUMA node."""
    message = wire.list_of_pool(pool_of("GPU-1::0", "GPU-1::1", sick=["GPU-1::1"]))

    assert wire.devices_of_list(message) == (
        Device(id="GPU-1::0", healthy=True, numa_nodes=(1,)),
        Device(id="GPU-1::1", healthy=False, numa_nodes=(1,)),
    )


def test_device_without_numa_node() -> None:
    """No topology at all is sent, not node 0."""
    message = wire.list_of_devices([Device(id="a")])

    assert not message.devices[0].HasField("topology")


def test_holders() -> None:
    """Devices of one resource that the kubelet tells by NUMA node come together again."""
    message = podresources_pb2.ListPodResourcesResponse()
    pod = message.pod_resources.add(name="p", namespace="n")
    pod.containers.add(name="idle")
    container = pod.containers.add(name="c")
    container.devices.add(resource_name="nvidia.com/gpu", device_ids=["a"])
    container.devices.add(resource_name="nvidia.com/gpu", device_ids=["b"])

    holders = tuple(wire.holders_of_message(message))

    assert holders == (
        ContainerDevices(namespace="n", pod="p", container="c", resource="nvidia.com/gpu", ids=("a", "b")),
    )
    assert holders == tuple(wire.holders_of_message(wire.message_of_holders(holders)))
