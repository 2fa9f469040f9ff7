"""One plugin server: one resource on one unix socket. The agent hands in what is offered and what is answered.

Synchronous grpcio with few threads: faster and steadier than its asyncio server. When to serve, register and begin
again is the business of `lifecycle`. Fields with several values are read as slices, which protobuf gives out in half the
time that it takes to go through them one by one.
"""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import grpc

from gpushare import names
from gpushare.domain.pools import Pool
from gpushare.errors import GpuShareError, KubeletError
from gpushare.kubelet import announcing, channels, counting, deviceplugin_pb2_grpc, sockets, wire
from gpushare.kubelet import deviceplugin_pb2 as pb
from gpushare.kubelet.counting import Call, Counts
from gpushare.kubelet.values import Answers, PluginOptions, Registration

THREADS = 8
"""Up to `announcing.MAX_STREAMS` of them wait in ListAndWatch; the others answer calls."""
SELF_DIAL_SECONDS = 5.0
TOLD_SECONDS = 0.5
DRAIN_SECONDS = 2.0
"""How long calls in flight may take to end when the server stops; an Allocate that is cut off fails its pod."""


def endpoint_of(resource: str) -> str:
    """File name of a resource's socket, the same as NVIDIA's device plugin has: `nvidia-gpu.shared.sock`.

    Of other groups with the group in it: `aliyun.com-gpu-mem.sock`.
    """
    if resource.startswith(names.PREFIX):
        return f"nvidia-{resource.removeprefix(names.PREFIX)}.sock"
    return f"{resource.replace('/', '-')}.sock"


class PluginServer(deviceplugin_pb2_grpc.DevicePluginServicer):
    """Offers one pool at a time. May be stopped and served again: the pool and the name stay.

    Every method may block for some seconds, so call them in a thread; `offer` never does.
    """

    def __init__(
        self, directory: Path, pool: Pool, answers: Answers, log: logging.Logger, *, counts: Counts | None = None
    ) -> None:
        """`counts`: those of all servers of one agent; without them, it has its own."""
        self.resource = pool.resource
        self.socket = directory / endpoint_of(pool.resource)
        self.options = PluginOptions(preferred_allocation=True)
        self._pool = pool
        self._answers = answers
        self._log = log
        self.counts = counts or Counts()
        self._allocated = Call(pool.resource, "Allocate", counting.OK)
        self._preferred = Call(pool.resource, "GetPreferredAllocation", counting.OK)
        self._lists = announcing.Announcer(wire.list_of_pool(pool))
        self._grpc: grpc.Server | None = None
        self._threads: ThreadPoolExecutor | None = None
        self._own: sockets.SocketId | None = None

    @property
    def pool(self) -> Pool:
        """What is offered now."""
        return self._pool

    @property
    def registration(self) -> Registration:
        """What the kubelet is told."""
        return Registration(endpoint=self.socket.name, resource=self.resource, options=self.options)

    @property
    def streams(self) -> int:
        """How many clients follow the list."""
        return self._lists.streams

    @property
    def owns_socket(self) -> bool:
        """Whether the socket at the path is the one that this server listens on."""
        return self._own is not None and self._own.is_same_file(sockets.identify(self.socket))

    def offer(self, pool: Pool) -> None:
        """Offers another content of the same resource, through the streams that are open."""
        self._pool = pool
        self._lists.publish(wire.list_of_pool(pool))

    def wait_told(self) -> bool:
        """Waits until what is offered has gone out to every client that follows the list; False when that took too long."""
        return self._lists.wait_sent(TOLD_SECONDS)

    def serve(self) -> None:
        """Listens and answers, taking the place of whatever lies at the path; ends what was served before.

        Raises:
            KubeletError: the socket cannot be bound or does not answer.
        """
        self.stop()
        self._check_place()
        self._threads = ThreadPoolExecutor(THREADS, thread_name_prefix=self.socket.name)
        server = grpc.server(self._threads)
        deviceplugin_pb2_grpc.add_DevicePluginServicer_to_server(self, server)
        # Under a name of its own first: gRPC removes the name that it was given when it stops, whoever's socket is there
        # by then. Renaming replaces a stale file in one step, and nobody meets a socket that does not answer yet.
        temporary = sockets.temporary_name(self.socket)
        try:
            server.add_insecure_port(f"unix:{temporary}")
            server.start()
            temporary.rename(self.socket)
        except (RuntimeError, OSError) as error:
            server.stop(None)
            # Without the temporary name, which makes each try another piece of news.
            reason = error.strerror if isinstance(error, OSError) else error
            raise KubeletError(f"cannot listen on {self.socket}: {reason}") from error
        self._grpc = server
        self._own = sockets.identify(self.socket)
        try:
            self._dial()
        except KubeletError:
            self.stop()
            raise

    def end_streams(self) -> None:
        """Ends every ListAndWatch; the kubelet then takes the resource for disconnected until it is registered again."""
        self._lists.end()

    def retire(self) -> None:
        """Announces an empty list, waits until it is sent, and stops.

        A kubelet whose plugin just goes would show its last count for minutes.
        """
        self.offer(Pool(resource=self._pool.resource, base=self._pool.base))
        self._lists.wait_sent(DRAIN_SECONDS)
        self.stop()

    def stop(self) -> None:
        """Ends the streams, lets calls in flight finish, and removes the socket if it is still this server's own."""
        server, threads = self._grpc, self._threads
        if server is None or threads is None:
            return
        # First the file, while the listener still holds its inode: nobody else's can be taken for it.
        sockets.unlink_own(self.socket, self._own)
        self._own = None
        self._lists.end()
        server.stop(DRAIN_SECONDS).wait()
        threads.shutdown()
        self._grpc = self._threads = None

    def _check_place(self) -> None:
        """Says what gRPC would only say to the standard error of the process."""
        if not self.socket.parent.is_dir():
            raise KubeletError(f"no kubelet: {self.socket.parent} does not exist")
        length = len(os.fsencode(self.socket))
        if length > sockets.MAX_PATH_BYTES:
            raise KubeletError(
                f"{self.socket} has {length} bytes; a socket's path has {sockets.MAX_PATH_BYTES} at most"
            )
        try:
            sockets.check_bindable(self.socket)
        except OSError as error:
            raise KubeletError(f"cannot listen on {self.socket}: {error.strerror}") from error

    def _dial(self) -> None:
        with channels.connect(self.socket) as channel:
            stub = deviceplugin_pb2_grpc.DevicePluginStub(channel)
            with channels.translated():
                stub.GetDevicePluginOptions(pb.Empty(), timeout=SELF_DIAL_SECONDS, wait_for_ready=True)

    def GetDevicePluginOptions(self, request: pb.Empty, context: grpc.ServicerContext) -> pb.DevicePluginOptions:  # noqa: N802, ARG002 - gRPC's
        """What this plugin can do."""
        return wire.message_of_options(self.options)

    def ListAndWatch(self, request: pb.Empty, context: grpc.ServicerContext) -> Iterator[pb.ListAndWatchResponse]:  # noqa: N802, ARG002 - gRPC's
        """The list, and again after every change."""
        return self._lists.follow(context.add_callback)

    def GetPreferredAllocation(  # noqa: N802 - gRPC's
        self, request: pb.PreferredAllocationRequest, context: grpc.ServicerContext
    ) -> pb.PreferredAllocationResponse:
        """Which devices each container should get."""
        pool, begin = self._pool, time.perf_counter()
        response = pb.PreferredAllocationResponse()
        for container in request.container_requests[:]:
            question = wire.preference_of_message(container)
            try:
                chosen = self._answers.prefer(pool, question)
            except GpuShareError as refusal:
                self._refuse(context, refusal, self._preferred, begin)
            response.container_responses.add().deviceIDs.extend(chosen)
        self.counts.count_call(self._preferred, time.perf_counter() - begin)
        return response

    def Allocate(self, request: pb.AllocateRequest, context: grpc.ServicerContext) -> pb.AllocateResponse:  # noqa: N802 - gRPC's
        """What each container gets with its devices."""
        pool, begin = self._pool, time.perf_counter()
        response = pb.AllocateResponse()
        for container in request.container_requests[:]:
            try:
                answer = self._answers.allocate(pool, tuple(container.devices_ids[:]))
            except GpuShareError as refusal:
                self._refuse(context, refusal, self._allocated, begin)
            response.container_responses.append(wire.message_of_answer(answer))
        self.counts.count_call(self._allocated, time.perf_counter() - begin)
        return response

    def PreStartContainer(  # noqa: N802 - gRPC's
        self,
        request: pb.PreStartContainerRequest,  # noqa: ARG002 - nothing is prepared
        context: grpc.ServicerContext,  # noqa: ARG002 - never refused
    ) -> pb.PreStartContainerResponse:
        """Nothing; the options say that it need not be called."""
        return pb.PreStartContainerResponse()

    def _refuse(self, context: grpc.ServicerContext, refusal: GpuShareError, call: Call, begin: float) -> None:
        self.counts.count_call(call._replace(code=counting.REFUSED), time.perf_counter() - begin)
        self._log.warning("request refused", extra={"resource": self.resource, "reason": str(refusal)})
        context.abort(grpc.StatusCode.UNKNOWN, str(refusal))  # raises; the code is what NVIDIA's plugin answers
