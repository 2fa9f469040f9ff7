"""Values to protobuf messages and back; the only place that knows field names of the protocols."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from gpushare.domain.pools import Pool
from gpushare.kubelet import deviceplugin_pb2 as pb
from gpushare.kubelet import podresources_pb2 as resources_pb
from gpushare.kubelet.values import ContainerDevices, Device, PluginOptions, PreferenceRequest, Registration
from gpushare.sharing.responses import ContainerAnswer, DeviceNode, Mount

HEALTHY = "Healthy"
UNHEALTHY = "Unhealthy"


def list_of_pool(pool: Pool) -> pb.ListAndWatchResponse:
    """The list that a plugin sends; a share without a NUMA node has no topology at all, as NVIDIA's plugin does."""
    return list_of_devices(
        Device(
            id=str(share.id),
            healthy=share.healthy,
            numa_nodes=() if share.numa_node is None else (share.numa_node,),
        )
        for share in pool.shares
    )


def list_of_devices(devices: Iterable[Device]) -> pb.ListAndWatchResponse:
    """The message for these devices."""
    return pb.ListAndWatchResponse(
        devices=[
            pb.Device(
                ID=device.id,
                health=HEALTHY if device.healthy else UNHEALTHY,
                topology=pb.TopologyInfo(nodes=[pb.NUMANode(ID=node) for node in device.numa_nodes])
                if device.numa_nodes
                else None,
            )
            for device in devices
        ]
    )


def devices_of_list(message: pb.ListAndWatchResponse) -> tuple[Device, ...]:
    """The devices of a list."""
    return tuple(
        Device(
            id=device.ID,
            healthy=device.health == HEALTHY,
            numa_nodes=tuple(node.ID for node in device.topology.nodes),
        )
        for device in message.devices
    )


def message_of_options(options: PluginOptions) -> pb.DevicePluginOptions:
    """What a plugin can do, as a message."""
    return pb.DevicePluginOptions(
        pre_start_required=options.pre_start, get_preferred_allocation_available=options.preferred_allocation
    )


def options_of_message(message: pb.DevicePluginOptions) -> PluginOptions:
    """What a plugin can do."""
    return PluginOptions(
        pre_start=message.pre_start_required, preferred_allocation=message.get_preferred_allocation_available
    )


def message_of_registration(registration: Registration) -> pb.RegisterRequest:
    """The request of a plugin to the kubelet."""
    return pb.RegisterRequest(
        version=registration.version,
        endpoint=registration.endpoint,
        resource_name=registration.resource,
        options=message_of_options(registration.options),
    )


def registration_of_message(message: pb.RegisterRequest) -> Registration:
    """What a plugin asks of the kubelet."""
    return Registration(
        version=message.version,
        endpoint=message.endpoint,
        resource=message.resource_name,
        options=options_of_message(message.options),
    )


def message_of_answer(answer: ContainerAnswer) -> pb.ContainerAllocateResponse:
    """What one container gets, as a message.

    Field by field and only what there is: most answers are one variable, and each empty field that is given costs more than that.
    """
    message = pb.ContainerAllocateResponse()
    for name, value in answer.envs.items():  # `update` would have to find out what it is given
        message.envs[name] = value
    if answer.mounts:
        message.mounts.extend(
            pb.Mount(container_path=mount.container_path, host_path=mount.host_path, read_only=mount.read_only)
            for mount in answer.mounts
        )
    if answer.devices:
        message.devices.extend(
            pb.DeviceSpec(
                container_path=device.container_path, host_path=device.host_path, permissions=device.permissions
            )
            for device in answer.devices
        )
    for name, value in answer.annotations.items():
        message.annotations[name] = value
    if answer.cdi_devices:
        message.cdi_devices.extend(pb.CDIDevice(name=name) for name in answer.cdi_devices)
    return message


def answer_of_message(message: pb.ContainerAllocateResponse) -> ContainerAnswer:
    """What one container gets."""
    return ContainerAnswer(
        envs=dict(message.envs),
        mounts=tuple(
            Mount(container_path=mount.container_path, host_path=mount.host_path, read_only=mount.read_only)
            for mount in message.mounts
        ),
        devices=tuple(
            DeviceNode(container_path=device.container_path, host_path=device.host_path, permissions=device.permissions)
            for device in message.devices
        ),
        annotations=dict(message.annotations),
        cdi_devices=tuple(device.name for device in message.cdi_devices),
    )


def message_of_preference(request: PreferenceRequest) -> pb.ContainerPreferredAllocationRequest:
    """A question for a preference, as a message."""
    return pb.ContainerPreferredAllocationRequest(
        available_deviceIDs=request.available,
        must_include_deviceIDs=request.must_include,
        allocation_size=request.size,
    )


def preference_of_message(message: pb.ContainerPreferredAllocationRequest) -> PreferenceRequest:
    """A question for a preference."""
    return PreferenceRequest(
        available=tuple(message.available_deviceIDs[:]),
        must_include=tuple(message.must_include_deviceIDs[:]),
        size=message.allocation_size,
    )


def message_of_holders(holders: Iterable[ContainerDevices]) -> resources_pb.ListPodResourcesResponse:
    """The list of pods with what their containers hold."""
    message = resources_pb.ListPodResourcesResponse()
    pods: dict[tuple[str, str], resources_pb.PodResources] = {}
    containers: dict[tuple[str, str, str], resources_pb.ContainerResources] = {}
    for holder in holders:
        pod_key = (holder.namespace, holder.pod)
        if pod_key not in pods:
            pods[pod_key] = message.pod_resources.add(name=holder.pod, namespace=holder.namespace)
        container_key = (*pod_key, holder.container)
        if container_key not in containers:
            containers[container_key] = pods[pod_key].containers.add(name=holder.container)
        containers[container_key].devices.add(resource_name=holder.resource, device_ids=holder.ids)
    return message


def holders_of_message(message: resources_pb.ListPodResourcesResponse) -> Iterator[ContainerDevices]:
    """Who holds what; one value a container and resource.

    The kubelet splits the devices of one resource by NUMA node; here they are together again.
    """
    for pod in message.pod_resources:
        for container in pod.containers:
            ids: dict[str, list[str]] = {}
            for devices in container.devices:
                ids.setdefault(devices.resource_name, []).extend(devices.device_ids)
            for resource, held in ids.items():
                yield ContainerDevices(
                    namespace=pod.namespace, pod=pod.name, container=container.name, resource=resource, ids=tuple(held)
                )
