"""Client of the kubelet's pod resources API: which container holds which devices. Called by the agent."""

from __future__ import annotations

from pathlib import Path

from gpushare.kubelet import channels, podresources_pb2_grpc, wire
from gpushare.kubelet import podresources_pb2 as resources_pb
from gpushare.kubelet.values import ContainerDevices

CALL_SECONDS = 5.0


def read_holders(socket: Path) -> tuple[ContainerDevices, ...]:
    """Every container that holds devices of any plugin. Blocks.

    Connects anew each time: a channel that has met a kubelet which was just restarting would not try again for a while.

    Raises:
        CallFailed: the kubelet does not answer.
    """
    with channels.connect(socket) as channel, channels.translated():
        stub = podresources_pb2_grpc.PodResourcesListerStub(channel)
        message = stub.List(resources_pb.ListPodResourcesRequest(), timeout=CALL_SECONDS)
    return tuple(wire.holders_of_message(message))
