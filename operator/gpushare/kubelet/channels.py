"""Client channels on unix sockets, and failures of calls as our errors. Used by every client of this package."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import grpc
import grpc.experimental

from gpushare.kubelet.values import CallFailed


def connect(socket: Path) -> grpc.Channel:
    """A channel to a unix socket; nothing is dialled before the first call."""
    return grpc.insecure_channel(
        f"unix:{socket}",
        options=(
            # Without an own pool gRPC shares one connection a path: a restarted server would be met by the dead one.
            ("grpc.use_local_subchannel_pool", 1),
            # A proxy of the environment is for HTTP, never for a socket of this machine.
            ("grpc.enable_http_proxy", 0),
            # Whoever waits for a stream reads it: else a thread stands in between, and both wake ten times a second.
            (grpc.experimental.ChannelOptions.SingleThreadedUnaryStream, 1),
        ),
    )


@contextmanager
def translated() -> Iterator[None]:
    """Turns gRPC's own exceptions into ours.

    Raises:
        CallFailed: with the code and text of the other side.
    """
    try:
        yield
    except grpc.RpcError as error:
        # Every error that a call raises is a call as well; only the type stubs do not say so.
        code = error.code().name if isinstance(error, grpc.Call) else "UNKNOWN"
        text = error.details() if isinstance(error, grpc.Call) else str(error)
        raise CallFailed(code, text or "") from error
    except ValueError as error:
        # So it says of a channel that was closed just before, as that of a plugin which another thread has seen go.
        raise CallFailed(grpc.StatusCode.CANCELLED.name, str(error)) from error
