"""Webhooks over their sockets: by URL and through a service, with and without trust, and as kubectl shows it."""

from __future__ import annotations

import asyncio
import base64
import json
import logging
import ssl
from collections.abc import AsyncIterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
import yaml

from gpushare.errors import ClusterUnavailable
from gpushare.kube.credentials import Credentials
from gpushare.kube.lean import LeanCluster
from gpushare.sandbox.apiserver.server import ApiServer, Settings
from gpushare.sandbox.tour import engine
from gpushare.serving import certificates
from gpushare.serving.certificates import YEAR, Authority
from gpushare.serving.http import HttpServer, Request, Response

LOG = logging.getLogger("test")
HOST = "hook.default.svc"


@pytest.fixture
async def server() -> AsyncIterator[ApiServer]:
    server = await ApiServer.start(Settings())
    yield server
    await server.stop()


@pytest.fixture
async def cluster(server: ApiServer) -> AsyncIterator[LeanCluster]:
    cluster = LeanCluster(Credentials(server=server.url, ca=server.ca_pem, token=server.token()))
    yield cluster
    await cluster.close()


class Hook:
    """A webhook that refuses every ConfigMap called `bad`, and warns of the others."""

    def __init__(self) -> None:
        self.authority = Authority.create("hooks")
        self.server = HttpServer(self._answer, LOG)
        self.context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self.show(HOST, "127.0.0.1")
        self.port = 0
        self.status = 200
        self.pause = 0.0

    async def start(self) -> None:
        self.port = await self.server.start("127.0.0.1", 0, tls=self.context)

    def show(self, *hosts: str, life: timedelta = YEAR) -> None:
        """Shows a certificate for these hosts to whoever connects from now on."""
        certificates.load_into(self.context, self.authority.issue("hook", hosts, life=life))

    async def _answer(self, request: Request) -> Response:
        asked = json.loads(request.body)["request"]
        await asyncio.sleep(self.pause)
        answer: dict[str, Any] = {"uid": asked["uid"], "allowed": asked["name"] != "bad", "warnings": ["seen"]}
        if not answer["allowed"]:
            answer["status"] = {"message": f"{request.path}: no bad ones", "code": 422}
        body = {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": answer}
        return Response(status=self.status, body=json.dumps(body).encode(), content_type="application/json")


@pytest.fixture
async def hook() -> AsyncIterator[Hook]:
    hook = Hook()
    await hook.start()
    yield hook
    await hook.server.stop()


def config_map(name: str) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": "default"}}


async def register(cluster: LeanCluster, authority: Authority, *, seconds: int = 30, **client: Any) -> None:
    bundle = base64.b64encode(authority.pem.encode()).decode()
    rule = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["configmaps"]}
    webhook = {
        "name": "maps.example.com", "clientConfig": {"caBundle": bundle, **client}, "rules": [rule],
        "sideEffects": "None", "admissionReviewVersions": ["v1"], "timeoutSeconds": seconds,
    }  # fmt: skip
    await cluster.apply(
        {
            "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingWebhookConfiguration",
            "metadata": {"name": "maps"}, "webhooks": [webhook],
        },
        manager="test",
    )  # fmt: skip


async def serve_pod(cluster: LeanCluster, port: int, *, ready: str = "True") -> None:
    """A pod with the webhook in it, as its kubelet reports it."""
    container = {"name": "c", "image": "i", "ports": [{"name": "https", "containerPort": port}]}
    metadata = {"name": "hook-0", "namespace": "default", "labels": {"app": "hook"}}
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": {"containers": [container]}}
    created = await cluster.create(pod)
    created["status"] |= {"podIP": "127.0.0.1", "conditions": [{"type": "Ready", "status": ready}]}
    await cluster.replace(created, subresource="status")


async def test_service_and_kubectl(server: ApiServer, cluster: LeanCluster, hook: Hook, tmp_path: Path) -> None:
    """A service leads to a ready pod, whose certificate is the service's; kubectl shows refusal and warning."""
    service = {"name": "hook", "namespace": "default", "path": "/check", "port": 443}
    await register(cluster, hook.authority, service=service)
    missing = 'Post "https://hook.default.svc:443/check?timeout=30s": service "hook" not found'
    with pytest.raises(ClusterUnavailable, match="failed to call webhook") as failed:
        await cluster.create(config_map("good"))
    assert missing in str(failed.value)

    spec = {"selector": {"app": "hook"}, "ports": [{"port": 443, "targetPort": "https"}]}
    metadata = {"name": "hook", "namespace": "default"}
    await cluster.create({"apiVersion": "v1", "kind": "Service", "metadata": metadata, "spec": spec})
    with pytest.raises(ClusterUnavailable, match='no endpoints available for service "hook"'):
        await cluster.create(config_map("good"))

    await serve_pod(cluster, hook.port)
    kubeconfig = tmp_path / "kubeconfig"
    kubeconfig.write_text(yaml.safe_dump(server.kubeconfig()))
    good = await kubectl(kubeconfig, "create", "configmap", "good")
    assert good == "Warning: seen\nconfigmap/good created\n"
    bad = await kubectl(kubeconfig, "create", "configmap", "bad")
    said = 'admission webhook "maps.example.com" denied the request: /check: no bad ones'
    assert said in bad
    assert bad.startswith("Warning: seen\nerror: failed to create configmap: ")


async def kubectl(kubeconfig: Path, *words: str) -> str:
    """What kubectl prints, on both of its outputs."""
    process = await asyncio.create_subprocess_exec(
        engine.find_kubectl(), "--kubeconfig", str(kubeconfig), *words,
        stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT,
    )  # fmt: skip
    output, _ = await process.communicate()
    return output.decode()


async def refused(cluster: LeanCluster) -> str:
    with pytest.raises(ClusterUnavailable) as failed:
        await cluster.create(config_map("good"))
    return str(failed.value)


async def test_url(cluster: LeanCluster, hook: Hook) -> None:
    """A URL is asked as it stands; each way of not answering is said as a real server says it."""
    url = f"https://127.0.0.1:{hook.port}/check"
    said = f'failed calling webhook "maps.example.com": failed to call webhook: Post "{url}?timeout=30s": '
    await register(cluster, Authority.create("others"), url=url)
    assert f"{said}tls: failed to verify certificate: x509: certificate signed by unknown authority" in await refused(
        cluster
    )

    await register(cluster, hook.authority, url=url)
    await cluster.create(config_map("fine"))

    hook.pause = 60.0
    await register(cluster, hook.authority, seconds=1, url=url)
    assert '?timeout=1s": context deadline exceeded' in await refused(cluster)
    await register(cluster, hook.authority, url=url)
    hook.pause, hook.status = 0.0, 503
    assert "an error on the server" in await refused(cluster)
    await hook.server.stop()
    assert f"{said}dial tcp 127.0.0.1:{hook.port}: connect: connection refused" in await refused(cluster)


@pytest.mark.parametrize(
    ("hosts", "life", "words"),
    [
        pytest.param(
            ("127.0.0.1",), timedelta(minutes=-1), "certificate has expired or is not yet valid", id="expired"
        ),
        pytest.param(("elsewhere",), YEAR, "certificate is not valid for the host", id="for another host"),
    ],
)
async def test_bad_certificate(
    cluster: LeanCluster, hook: Hook, hosts: tuple[str, ...], life: timedelta, words: str
) -> None:
    """A certificate that cannot be trusted stops the request, with the reason."""
    hook.show(*hosts, life=life)
    await register(cluster, hook.authority, url=f"https://127.0.0.1:{hook.port}/check")

    assert f"tls: failed to verify certificate: x509: {words}" in await refused(cluster)


async def test_connections_are_kept(cluster: LeanCluster, hook: Hook) -> None:
    """Many calls take one handshake."""
    await register(cluster, hook.authority, url=f"https://127.0.0.1:{hook.port}/check")

    for number in range(3):
        await cluster.create(config_map(f"good-{number}"))

    assert len(hook.server._connections) == 1
