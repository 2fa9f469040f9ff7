"""The kubelet's side of both protocols, for a simulated kubelet and for tests.

It takes registrations, calls plugins, and tells who holds what. Everything here is synchronous and may be called from
any thread; a server calls back in threads of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import grpc

from gpushare.errors import GpuShareError, KubeletError
from gpushare.kubelet import channels, deviceplugin_pb2_grpc, podresources_pb2_grpc, wire
from gpushare.kubelet import deviceplugin_pb2 as pb
from gpushare.kubelet import podresources_pb2 as resources_pb
from gpushare.kubelet.values import (
    CallFailed,
    ContainerDevices,
    Device,
    PluginOptions,
    PreferenceRequest,
    Registration,
)
from gpushare.sharing.responses import ContainerAnswer

CALL_SECONDS = 10.0
STOP_SECONDS = 1.0


class SocketServer:
    """One gRPC server on one unix socket."""

    def __init__(self, socket: Path, *, threads: int) -> None:
        self.socket = socket
        self._pool = ThreadPoolExecutor(threads, thread_name_prefix=socket.name)
        self.grpc = grpc.server(self._pool)

    def start(self) -> None:
        """Binds the socket, taking the place of a stale file.

        Raises:
            KubeletError: the socket cannot be bound.
        """
        self.socket.unlink(missing_ok=True)
        try:
            self.grpc.add_insecure_port(f"unix:{self.socket}")
        except RuntimeError as error:
            raise KubeletError(f"cannot listen on {self.socket}: {error}") from error
        self.grpc.start()

    def stop(self) -> None:
        """Ends the server and removes its socket. Safe to call twice."""
        self.grpc.stop(STOP_SECONDS).wait()
        self._pool.shutdown()
        self.socket.unlink(missing_ok=True)


class RegistrationServer(SocketServer, deviceplugin_pb2_grpc.RegistrationServicer):
    """`kubelet.sock`: takes the registrations of plugins."""

    def __init__(self, socket: Path, on_register: Callable[[Registration], None]) -> None:
        """Calls `on_register` for each registration; a `GpuShareError` that it raises refuses the plugin."""
        super().__init__(socket, threads=4)
        self._on_register = on_register
        deviceplugin_pb2_grpc.add_RegistrationServicer_to_server(self, self.grpc)

    def Register(self, request: pb.RegisterRequest, context: grpc.ServicerContext) -> pb.Empty:  # noqa: N802 - gRPC's
        """One plugin offers one resource."""
        try:
            self._on_register(wire.registration_of_message(request))
        except GpuShareError as refusal:
            context.abort(grpc.StatusCode.UNKNOWN, str(refusal))
        return pb.Empty()


class PodResourcesServer(SocketServer, podresources_pb2_grpc.PodResourcesListerServicer):
    """The socket that tells which container holds which devices."""

    def __init__(
        self,
        socket: Path,
        provider: Callable[[], Iterable[ContainerDevices]],
        allocatable: Callable[[], Mapping[str, Sequence[str]]] = dict,
    ) -> None:
        """Asks `provider` who holds what, and `allocatable` for the healthy ids of each resource, anew at each call."""
        super().__init__(socket, threads=2)
        self._provider = provider
        self._allocatable = allocatable
        podresources_pb2_grpc.add_PodResourcesListerServicer_to_server(self, self.grpc)

    def List(  # noqa: N802 - gRPC's
        self,
        request: resources_pb.ListPodResourcesRequest,  # noqa: ARG002 - empty
        context: grpc.ServicerContext,  # noqa: ARG002 - never refused
    ) -> resources_pb.ListPodResourcesResponse:
        """All pods with what their containers hold."""
        return wire.message_of_holders(self._provider())

    def Get(  # noqa: N802 - gRPC's
        self, request: resources_pb.GetPodResourcesRequest, context: grpc.ServicerContext
    ) -> resources_pb.GetPodResourcesResponse:
        """One pod with what its containers hold."""
        wanted = (request.pod_namespace, request.pod_name)
        found = wire.message_of_holders(one for one in self._provider() if (one.namespace, one.pod) == wanted)
        if not found.pod_resources:
            context.abort(grpc.StatusCode.UNKNOWN, f"pod {wanted[1]} in namespace {wanted[0]} not found")
        return resources_pb.GetPodResourcesResponse(pod_resources=found.pod_resources[0])

    def GetAllocatableResources(  # noqa: N802 - gRPC's
        self,
        request: resources_pb.AllocatableResourcesRequest,  # noqa: ARG002 - empty
        context: grpc.ServicerContext,  # noqa: ARG002 - never refused
    ) -> resources_pb.AllocatableResourcesResponse:
        """All healthy devices, given out or not."""
        return resources_pb.AllocatableResourcesResponse(
            devices=[
                resources_pb.ContainerDevices(resource_name=resource, device_ids=ids)
                for resource, ids in self._allocatable().items()
            ]
        )


class PluginClient:
    """The kubelet's connection to one plugin. Every method raises `CallFailed` when the plugin refuses or is gone."""

    def __init__(self, socket: Path, *, call_seconds: float = CALL_SECONDS) -> None:
        self._call_seconds = call_seconds
        self._channel = channels.connect(socket)
        self._stub = deviceplugin_pb2_grpc.DevicePluginStub(self._channel)

    def options(self) -> PluginOptions:
        """What the plugin can do."""
        with channels.translated():
            message = self._stub.GetDevicePluginOptions(pb.Empty(), timeout=self._call_seconds, wait_for_ready=True)
        return wire.options_of_message(message)

    def list_and_watch(self) -> Iterator[tuple[Device, ...]]:
        """Every list that the plugin sends, the first at once. Blocks between them, so give it a thread of its own.

        Ends when the plugin ends the stream or `close` is called.
        """
        try:
            with channels.translated():
                stream = self._stub.ListAndWatch(pb.Empty())
                try:
                    for message in stream:
                        yield wire.devices_of_list(message)
                finally:
                    stream.cancel()
        except CallFailed as failure:
            if failure.code != grpc.StatusCode.CANCELLED.name:  # cancelled: `close` was called
                raise

    def allocate(self, containers: Sequence[Sequence[str]]) -> tuple[ContainerAnswer, ...]:
        """What the containers of one pod get, each with its list of ids."""
        request = pb.AllocateRequest(
            container_requests=[pb.ContainerAllocateRequest(devices_ids=ids) for ids in containers]
        )
        with channels.translated():
            message = self._stub.Allocate(request, timeout=self._call_seconds)
        return tuple(map(wire.answer_of_message, message.container_responses))

    def preferred(self, requests: Sequence[PreferenceRequest]) -> tuple[tuple[str, ...], ...]:
        """Which devices the plugin would take for each container."""
        request = pb.PreferredAllocationRequest(container_requests=list(map(wire.message_of_preference, requests)))
        with channels.translated():
            message = self._stub.GetPreferredAllocation(request, timeout=self._call_seconds)
        return tuple(tuple(answer.deviceIDs) for answer in message.container_responses)

    def close(self) -> None:
        """Ends the connection and every stream on it. Safe to call twice."""
        self._channel.close()
