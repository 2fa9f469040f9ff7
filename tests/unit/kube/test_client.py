"""The full client, where it differs from the lean one."""

from __future__ import annotations

import asyncio
import gc
import socket
import ssl
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from gpushare.domain import manifests
from gpushare.kube.client import FullCluster
from gpushare.kube.credentials import Credentials
from gpushare.serving.certificates import Authority

ANSWER = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n%x\r\n%s\r\n"
EVENT = b'{"type": "BOOKMARK", "object": {"kind": "Node", "metadata": {"resourceVersion": "1"}}}\n'


@pytest.fixture
def deaf_server(tmp_path: Path) -> Iterator[Credentials]:
    """An API server that sends one event, and from then on does not listen any more."""
    authority = Authority.create("test")
    pair = authority.issue("server", ("127.0.0.1",))
    for name, text in (("crt", pair.certificate), ("key", pair.key)):
        (tmp_path / name).write_text(text)
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(tmp_path / "crt", tmp_path / "key")
    over = threading.Event()

    def serve() -> None:
        plain, _ = listener.accept()
        with plain, context.wrap_socket(plain, server_side=True) as connection:
            connection.recv(65536)
            connection.sendall(ANSWER % (len(EVENT), EVENT))
            over.wait()

    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=serve)
        thread.start()
        yield Credentials(server=f"https://127.0.0.1:{listener.getsockname()[1]}", ca=authority.pem)
        over.set()
        thread.join()


def test_a_closed_watch_leaves_nothing(deaf_server: Credentials) -> None:
    """Its connection is closed with it, also where the server does not say goodbye; else Python complains here."""

    async def watch() -> None:
        cluster = FullCluster(deaf_server)
        events = cluster.watch(manifests.NODE)
        await anext(events)
        await events.aclose()
        await cluster.close()

    asyncio.run(watch())
    gc.collect()
