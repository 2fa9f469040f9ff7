"""Tells the kubelet about a plugin. Called by the life cycle of each plugin server."""

from __future__ import annotations

from pathlib import Path

from gpushare.errors import KubeletError
from gpushare.kubelet import channels, deviceplugin_pb2_grpc, wire
from gpushare.kubelet.values import CallFailed, Registration

CALL_SECONDS = 5.0
_TOO_LATE = "DEADLINE_EXCEEDED"


def register(kubelet_socket: Path, registration: Registration) -> None:
    """Registers; before it answers, the kubelet dials the plugin's socket. Blocks.

    Raises:
        KubeletError: no kubelet answers, or it refuses.
    """
    try:
        with channels.connect(kubelet_socket) as channel, channels.translated():
            stub = deviceplugin_pb2_grpc.RegistrationStub(channel)
            stub.Register(wire.message_of_registration(registration), timeout=CALL_SECONDS)
    except CallFailed as error:
        if error.code != _TOO_LATE:
            raise
        raise KubeletError(f"the kubelet does not answer within {CALL_SECONDS:g} s") from error
