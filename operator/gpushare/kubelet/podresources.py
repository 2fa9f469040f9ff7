"""Client of the kubelet's pod resources API: which container holds which devices. Called by the agent."""

from __future__ import annotations

from pathlib import Path

from gpushare.kubelet import channels, podresources_pb2_grpc, wire
from gpushare.kubelet import podresources_pb2 as resources_pb
from gpushare.kubelet.values import ContainerDevices

CALL_SECONDS = 5.0


class PodResources:
    """A connection to the pod resources socket. Blocks; call it in a thread."""

    def __init__(self, socket: Path) -> None:
        self._channel = channels.connect(socket)
        self._stub = podresources_pb2_grpc.PodResourcesListerStub(self._channel)

    def read_holders(self) -> tuple[ContainerDevices, ...]:
        """Every container that holds devices of any plugin.

        Raises:
            CallFailed: the kubelet does not answer.
        """
        with channels.translated():
            message = self._stub.List(resources_pb.ListPodResourcesRequest(), timeout=CALL_SECONDS)
        return tuple(wire.holders_of_message(message))

    def close(self) -> None:
        """Ends the connection. Safe to call twice."""
        self._channel.close()
