"""An embedded cluster with the controller's rights in it, and the controller running under exactly those."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import yaml

from gpushare import data, names
from gpushare.controller import app
from gpushare.domain import manifests
from gpushare.domain.manifests import Kind
from gpushare.kube.credentials import from_kubeconfig
from gpushare.kube.lean import LeanCluster
from gpushare.render import ordering, templates
from gpushare.sandbox.apiserver.api import Answer
from gpushare.sandbox.apiserver.requests import Request
from gpushare.sandbox.apiserver.server import ApiServer, Settings

NAMESPACE = "gpu-operator"
IMAGE = "registry.example/gpu-sharing-operator:test"
POLICY = "cluster-policy"
WAIT_SECONDS = 60.0
_STEP_SECONDS = 0.05
_ACCOUNT = f"system:serviceaccount:{NAMESPACE}:{names.CONTROLLER}"
_GROUPS = ("system:serviceaccounts", f"system:serviceaccounts:{NAMESPACE}", "system:authenticated")
REQUIRED = (
    "operator", "daemonsets", "driver", "toolkit", "devicePlugin", "dcgm", "dcgmExporter", "nodeStatusExporter", "gfd",
)  # fmt: skip


class GpuCluster:
    """A cluster as an administrator sees it; with `controller`, it works."""

    def __init__(self, server: ApiServer, admin: LeanCluster, folder: Path) -> None:
        self.server = server
        self.admin = admin
        self._folder = folder
        self.log = logging.getLogger("controller")
        self.writes: list[str] = []
        """`VERB path` of every request of the controller that changes something; a review is a question."""
        self._audit()

    @classmethod
    @contextlib.asynccontextmanager
    async def running(cls, folder: Path) -> AsyncIterator[GpuCluster]:
        """With CRDs, the operator's namespace, and the roles of its chart."""
        server = await ApiServer.start(Settings())
        cluster = cls(server, LeanCluster(_credentials(server, folder, "admin")), folder)
        try:
            await cluster.install()
            yield cluster
        finally:
            await cluster.admin.close()
            await server.stop()

    def _audit(self) -> None:
        api, token = self.server.api, self.server.token(_ACCOUNT, _GROUPS)
        handle = api.handle

        async def audited(request: Request) -> Answer:
            is_ours = request.headers.get("authorization") == f"Bearer {token}"
            if is_ours and request.method != "GET" and not request.path.endswith("reviews"):
                self.writes.append(f"{request.method} {request.path}")
            return await handle(request)

        api.handle = audited  # type: ignore[method-assign]

    def writes_to(self, *plurals: str) -> list[str]:
        """The writes to kinds by their plural names; Events and the Lease count apart."""
        return [write for write in self.writes if any(f"/{plural}" in write for plural in plurals)]

    async def quiet(self, seconds: float = 1.2) -> None:
        """Waits until the controller has written nothing for a while: longer than it may put off a status.

        In small steps: on a busy machine each takes longer, and so does what the controller does meanwhile.
        """
        steps, before = 0, -1
        while steps < seconds / _STEP_SECONDS:
            written = sum("/leases" not in write for write in self.writes)
            steps, before = (steps + 1 if written == before else 0), written
            await asyncio.sleep(_STEP_SECONDS)

    async def install(self) -> None:
        await self.admin.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}})
        wanted: list[dict] = []
        for path in sorted(data.path_of("crds").glob("*.yaml")):
            wanted += list(yaml.safe_load_all(path.read_text()))
        wanted += templates.render("controller", {"namespace": NAMESPACE, "image": IMAGE})
        for manifest in ordering.in_order(wanted):
            # The controller runs in the test, not in a pod.
            if manifest["kind"] != "Deployment":
                await self.admin.apply(manifest, manager="installer", force=True)

    def write_kubeconfig(self) -> Path:
        """A kubeconfig of the ServiceAccount that the chart gives the controller."""
        path = self._folder / "controller.yaml"
        path.write_text(yaml.safe_dump(self.server.kubeconfig(_ACCOUNT, _GROUPS)))
        return path

    @contextlib.asynccontextmanager
    async def controller(self, *argv: str, identity: str = "controller-0") -> AsyncIterator[asyncio.Task[int]]:
        """The whole controller, as the ServiceAccount that the chart gives it."""
        path = self.write_kubeconfig()
        environ = {names.ENV_NAMESPACE: NAMESPACE, names.ENV_DEVICE_PLUGIN_IMAGE: IMAGE, "POD_NAME": identity}
        stop = asyncio.Event()
        task = asyncio.create_task(
            app.run(["--kubeconfig", str(path), *argv], environ, root=self._folder, log=self.log, stop=stop)
        )
        try:
            yield task
            assert not task.done(), "the controller ended by itself"
        finally:
            stop.set()
            await task

    # What a person does.

    async def apply_policy(self, name: str = POLICY, **spec: Any) -> dict:
        """A ClusterPolicy as the chart would create it, but for `spec`."""
        body = {
            "apiVersion": "nvidia.com/v1",
            "kind": "ClusterPolicy",
            "metadata": {"name": name},
            "spec": {**{key: {} for key in REQUIRED}, **spec},
        }
        return await self.admin.apply(body, manager="person", force=True)

    async def patch_policy(self, spec: Any, name: str = POLICY) -> None:
        assert await self.admin.patch(manifests.CLUSTER_POLICY, name, {"spec": spec})

    async def apply_config(self, name: str, *, namespace: str = NAMESPACE, **texts: str) -> None:
        body = {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": name, "namespace": namespace},
            "data": {key.replace("_", "-"): text for key, text in texts.items()},
        }
        await self.admin.apply(body, manager="person", force=True)

    async def add_node(self, name: str, *, gpu: bool = True, **labels: str) -> dict:
        """A node as node feature discovery labels it."""
        found = {names.LABELS_NFD_GPU[0]: "true"} if gpu else {}
        body = {
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {
                "name": name,
                "labels": {"feature.node.kubernetes.io/kernel-version.major": "6", **found, **labels},
            },
        }
        return await self.admin.create(body)

    async def label(self, node: str, **labels: str | None) -> None:
        """Sets or, with None, removes labels below `nvidia.com/`; `config` is `device-plugin.config`."""
        keys = {names.PREFIX + {"config": "device-plugin.config"}.get(key, key): value for key, value in labels.items()}
        assert await self.admin.patch(manifests.NODE, node, {"metadata": {"labels": keys}})

    # What an agent does.

    async def run_agent(self, node: str, *, labels: dict[str, str] | None = None) -> None:
        """Stands for the agent's pod on a node: ready, and running whatever the GPUNode says."""
        pod = {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {
                "name": f"agent-{node}",
                "namespace": NAMESPACE,
                "labels": {"app": names.DAEMONSET_DEVICE_PLUGIN},
            },
            "spec": {"nodeName": node, "containers": [{"name": "agent", "image": IMAGE}]},
        }
        await self.admin.apply(pod, manager="kubelet")
        ready = {"status": {"conditions": [{"type": "Ready", "status": "True"}]}}
        await self.admin.patch(manifests.POD, f"agent-{node}", ready, NAMESPACE, subresource="status")
        await self.report(node, labels=labels)

    async def report(self, node: str, *, labels: dict[str, str] | None = None, **status: Any) -> None:
        """Writes what the agent of a node would write: its revision is applied."""
        gpu_node = await self.get(manifests.GPU_NODE, node)
        body = {
            "apiVersion": "gpushare.dev/v1alpha1",
            "kind": "GPUNode",
            "metadata": {"name": node},
            "status": {
                "appliedRevision": gpu_node["spec"]["config"]["revision"],
                "labels": labels or {},
                "conditions": [
                    {
                        "type": "ConfigApplied",
                        "status": "True",
                        "reason": "Applied",
                        "message": "",
                        "lastTransitionTime": "2026-01-01T00:00:00Z",
                        "observedGeneration": gpu_node["metadata"]["generation"],
                    }
                ],
                **status,
            },
        }
        await self.admin.apply(body, manager=names.MANAGER_AGENT, force=True, subresource="status")

    async def roll_out(self, nodes: int = 1) -> None:
        """Stands for the DaemonSet controller: all pods are there."""
        live = await self.get(manifests.DAEMON_SET, names.DAEMONSET_DEVICE_PLUGIN, NAMESPACE)
        numbers = dict.fromkeys(
            (
                "desiredNumberScheduled",
                "currentNumberScheduled",
                "updatedNumberScheduled",
                "numberAvailable",
                "numberReady",
            ),
            nodes,
        )
        status = {"observedGeneration": live["metadata"]["generation"], "numberMisscheduled": 0, **numbers}
        await self.admin.patch(
            manifests.DAEMON_SET, names.DAEMONSET_DEVICE_PLUGIN, {"status": status}, NAMESPACE, subresource="status"
        )

    # What a test looks at.

    async def get(self, kind: Kind, name: str, namespace: str = "") -> dict:
        found = await self.admin.get(kind, name, namespace)
        assert found is not None, f"{kind.kind} {name} is not there"
        return found

    async def until(self, what: str, holds: Callable[[], Awaitable[Any]]) -> Any:
        """Waits until `holds` gives something true, and returns that. An AssertionError in it means not yet."""
        last: object = None
        try:
            async with asyncio.timeout(WAIT_SECONDS):
                while True:
                    try:
                        if last := await holds():
                            return last
                    except AssertionError as error:
                        last = error
                    await asyncio.sleep(0.02)
        except TimeoutError:
            raise AssertionError(f"waited in vain: {what}; last: {last}") from None

    async def condition(self, type_: str, name: str = POLICY) -> dict:
        policy = await self.get(manifests.CLUSTER_POLICY, name)
        conditions = policy.get("status", {}).get("conditions", ())
        found = next((c for c in conditions if c["type"] == type_), None)
        assert found is not None, f"no condition {type_} among {[c['type'] for c in conditions]}"
        return found

    async def until_condition(self, type_: str, status: str, *, saying: str = "", name: str = POLICY) -> dict:
        async def holds() -> dict | None:
            found = await self.condition(type_, name)
            assert found["status"] == status, found
            assert saying in found["message"], found
            return found

        return await self.until(f"{type_}={status} {saying!r}", holds)

    async def until_config(self, node: str, **expected: Any) -> dict:
        async def holds() -> dict:
            config = (await self.get(manifests.GPU_NODE, node))["spec"]["config"]
            assert expected.items() <= config.items(), config
            return config

        return await self.until(f"config of {node} is {expected}", holds)


def _credentials(server: ApiServer, folder: Path, user: str):
    path = folder / f"{user}.yaml"
    path.write_text(yaml.safe_dump(server.kubeconfig(user)))
    return from_kubeconfig(path)


def prometheus_kind() -> dict[str, Any]:
    """As the Prometheus operator brings it, but for its schema."""
    kind = manifests.SERVICE_MONITOR
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    definition = manifests.CUSTOM_RESOURCE_DEFINITION
    return {
        "apiVersion": definition.api_version,
        "kind": definition.kind,
        "metadata": {"name": f"{kind.plural}.{kind.group}"},
        "spec": {
            "group": kind.group,
            "scope": "Namespaced",
            "names": {"kind": kind.kind, "plural": kind.plural},
            "versions": [
                {"name": kind.version, "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
            ],
        },
    }
