"""`gpushare sandbox`, where it cannot start."""

from __future__ import annotations

import socket
import subprocess
import sys


def test_port_that_is_taken() -> None:
    """It is named, and what to do about it."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        words = [sys.executable, "-m", "gpushare", "sandbox", "--port", str(port)]
        done = subprocess.run(words, capture_output=True, text=True, check=False)

    assert (done.returncode, done.stderr) == (1, f"Error: port {port} is taken; name another one with --port\n")
