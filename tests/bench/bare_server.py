"""A bare synchronous grpcio server with fixed answers: `bare_server.py SOCKET`. What the agent is compared with."""

from __future__ import annotations

import signal
import sys
from concurrent.futures import ThreadPoolExecutor

import grpc

from gpushare.kubelet import deviceplugin_pb2 as pb
from gpushare.kubelet import deviceplugin_pb2_grpc

ALLOCATED = pb.AllocateResponse(
    container_responses=[pb.ContainerAllocateResponse(envs={"NVIDIA_VISIBLE_DEVICES": "GPU-" + "0" * 32})]
)
PREFERRED = pb.PreferredAllocationResponse(
    container_responses=[pb.ContainerPreferredAllocationResponse(deviceIDs=[f"GPU-{'0' * 32}::{n}" for n in range(2)])]
)


class Bare(deviceplugin_pb2_grpc.DevicePluginServicer):
    """Answers whatever is asked."""

    def GetDevicePluginOptions(self, *_: object) -> pb.DevicePluginOptions:  # noqa: N802 - gRPC's
        """For whoever waits until it listens."""
        return pb.DevicePluginOptions()

    def Allocate(self, *_: object) -> pb.AllocateResponse:  # noqa: N802 - gRPC's
        """The same answer each time."""
        return ALLOCATED

    def GetPreferredAllocation(self, *_: object) -> pb.PreferredAllocationResponse:  # noqa: N802 - gRPC's
        """The same answer each time."""
        return PREFERRED


server = grpc.server(ThreadPoolExecutor(4))
deviceplugin_pb2_grpc.add_DevicePluginServicer_to_server(Bare(), server)
server.add_insecure_port(f"unix:{sys.argv[1]}")
server.start()
signal.signal(signal.SIGTERM, lambda *_: server.stop(0))
server.wait_for_termination()
