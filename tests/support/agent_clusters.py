"""A cluster for one agent, with the rights that its roles give; controller, scheduler and kubelet are played by the test."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Mapping
from pathlib import Path
from typing import Any, Final, Self

import pytest
import yaml

from gpushare import data, names
from gpushare.domain import gpunode, manifests
from gpushare.domain.fractions import Decision, Dialect, Grant
from gpushare.domain.gpunode import Config, ConfigReason, ConfigSource
from gpushare.domain.manifests import Manifest
from gpushare.kube.credentials import from_kubeconfig
from gpushare.kube.lean import LeanCluster
from gpushare.kubelet.values import ContainerDevices, PreferenceRequest
from gpushare.render.templates import render
from gpushare.sandbox.apiserver.server import ApiServer, Settings
from gpushare.sharing.responses import ContainerAnswer
from support.agents import GPU, Machine
from support.bound_pods import asking

NODE: Final = "gpu01"
WAIT_SECONDS: Final = 60.0
HAMI: Final = "gpushare: {fractions: hami}\n"
ALIYUN: Final = "gpushare: {fractions: aliyun}\n"
_ACCOUNT = "system:serviceaccount:gpu-operator:nvidia-device-plugin"
_GROUPS = ("system:serviceaccounts", "system:serviceaccounts:gpu-operator", "system:authenticated")
_SECRETS = "var/run/secrets/kubernetes.io/serviceaccount"
_TEMPLATES = data.path_of("templates") / "device-plugin"

_OF_FRACTIONS, _BINDING = render("fractions", {"namespace": "gpu-operator"})
ROLES: Final = (yaml.safe_load((_TEMPLATES / "0210-cluster-role.yaml.j2").read_text()), _OF_FRACTIONS)
"""What an agent may do in the cluster: everywhere, and where it gives out fractions."""


class AgentCluster:
    """A cluster with one node and its agent."""

    def __init__(self, server: ApiServer, admin: LeanCluster, machine: Machine) -> None:
        self.server = server
        self.admin = admin
        self.machine = machine
        self.node_uid = ""

    @classmethod
    @contextlib.asynccontextmanager
    async def running(cls, machine: Machine, folder: Path) -> AsyncIterator[Self]:
        """With the node, the kind of its GPUNode, and the roles."""
        server = await ApiServer.start(Settings())
        path = folder / "admin.yaml"
        path.write_text(yaml.safe_dump(server.kubeconfig("admin")))
        admin = LeanCluster(from_kubeconfig(path))
        made = cls(server, admin, machine)
        try:
            await made._install()
            yield made
        finally:
            await admin.close()
            await server.stop()

    async def _install(self) -> None:
        kind = yaml.safe_load((data.path_of("crds") / "gpushare.dev_gpunodes.yaml").read_text())
        role = {**_BINDING["roleRef"], "name": ROLES[0]["metadata"]["name"]}
        binding = {**_BINDING, "metadata": {"name": "agent"}, "roleRef": role}
        for manifest in (kind, binding, _BINDING):
            await self.admin.create(manifest)
        await self.grant(ROLES)
        node = await self.admin.create({"apiVersion": "v1", "kind": "Node", "metadata": {"name": NODE}})
        self.node_uid = node["metadata"]["uid"]

    async def grant(self, roles: tuple[Manifest, ...]) -> None:
        """From now on the agent has these rights."""
        for role in roles:
            await self.admin.apply(role, manager="installer", force=True)

    async def assign(self, content: str, *, mig_strategy: str = "") -> None:
        """What the controller does."""
        source = ConfigSource(namespace="gpu-operator", name="configs", key="any")
        config = Config(reason=ConfigReason.DEFAULT, source=source, content=content, mig_strategy=mig_strategy)
        manifest = gpunode.assignment_manifest(NODE, self.node_uid, config)
        await self.admin.apply(manifest, manager=names.MANAGER_CONTROLLER, force=True)

    async def status(self) -> dict[str, Any]:
        found = await self.admin.get(manifests.GPU_NODE, NODE)
        return (found or {}).get("status") or {}

    async def until(self, expected: Callable[[dict[str, Any]], Any]) -> dict[str, Any]:
        """Waits until the status is as expected, and gives it."""
        status: dict[str, Any] = {}
        try:
            async with asyncio.timeout(WAIT_SECONDS):
                while not expected(status := await self.status()):  # noqa: ASYNC110 - as a person would
                    await asyncio.sleep(0.02)
        except TimeoutError:
            pytest.fail(f"not seen: {status}")
        return status

    async def is_serving(self, text: str, **totals: int) -> dict[str, Any]:
        """Waits until a mode of fractions is in force and the kubelet has the lists."""
        status = await self.until(lambda status: status.get("appliedRevision") == gpunode.revision_of(text))
        kubelet = self.machine.kubelet
        resources = {"gpu": GPU, "mem": names.RESOURCE_ALIYUN_MEM, "count": names.RESOURCE_ALIYUN_COUNT}
        wanted = {name: totals.get(key, 0) for key, name in resources.items()}
        await kubelet.until(lambda: all(kubelet.total(name) == total for name, total in wanted.items()))
        return status

    def agent(self, *argv: str, port: int = 0) -> contextlib.AbstractAsyncContextManager[asyncio.Event]:
        """Runs the agent with its ServiceAccount; `port`: of somebody between it and the server."""
        folder = self.machine.root / _SECRETS
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "ca.crt").write_text(self.server.ca_pem)
        (folder / "token").write_text(self.server.token(_ACCOUNT, _GROUPS))
        environ = {
            "KUBERNETES_SERVICE_HOST": "127.0.0.1",
            "KUBERNETES_SERVICE_PORT": str(port or self.server.port),
            "NODE_NAME": NODE,
            "MPS_ROOT": "/run/nvidia/mps",
        }
        return self.machine.agent(*argv, environ=environ)

    async def bind(
        self,
        name: str,
        containers: Mapping[str, tuple[Grant, ...]],
        *,
        shape: str = "s",
        dialect: Dialect = Dialect.HAMI,
        forge: str | None = None,
    ) -> str:
        """Creates a pod and binds it with the scheduler's decision in the annotations of the Binding; gives its uid."""
        asked = [asking(key, sum(one.units or 1 for one in grants), dialect) for key, grants in containers.items()]
        pod = await self.admin.create(
            {
                "apiVersion": "v1",
                "kind": "Pod",
                "metadata": {"name": name, "namespace": "default"},
                "spec": {"containers": asked},
            }
        )
        uid = pod["metadata"]["uid"]
        decision = Decision(pod_uid=uid, dialect=dialect, shape=shape, containers=containers)
        text = decision.to_annotation() if forge is None else forge
        await self.admin.create(
            {
                "apiVersion": "v1",
                "kind": "Binding",
                "metadata": {
                    "name": name,
                    "namespace": "default",
                    "uid": uid,
                    "annotations": {names.ANNOTATION_DECISION: text} if text else {},
                },
                "target": {"kind": "Node", "name": NODE},
            },
            subresource="binding",
            name=name,
        )
        return uid

    async def let_in(
        self, name: str, container: str, size: int, resource: str = GPU, choose: tuple[str, ...] = ()
    ) -> ContainerAnswer:
        """What a kubelet does for one container; `choose`: it does not ask for a preference, or does not heed it."""
        client = self.machine.kubelet.clients[resource]
        taken = {id_ for holder in self.machine.holders for id_ in holder.ids}
        free = tuple(id_ for id_ in self.machine.kubelet.ids(resource) if id_ not in taken)
        request = PreferenceRequest(available=free, size=size)
        ids = choose or tuple((await asyncio.to_thread(client.preferred, [request]))[0]) or free[:size]
        [answer] = await asyncio.to_thread(client.allocate, [list(ids)])
        self.machine.holders.append(
            ContainerDevices(namespace="default", pod=name, container=container, resource=resource, ids=ids)
        )
        return answer


def held_by(status: Mapping[str, Any]) -> dict[str, list[tuple[int, str, int, int]]]:
    """Index of the GPU, container, MiB and percent, by uid of the pod."""
    found: dict[str, list[tuple[int, str, int, int]]] = {}
    for gpu in status.get("allocations", ()):
        for one in gpu["containers"]:
            if "podUID" in one:
                item = (gpu["index"], one["container"], one.get("memoryMiB", 0), one.get("cores", 0))
                found.setdefault(one["podUID"], []).append(item)
    return found
