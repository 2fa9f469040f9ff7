"""What controller and agents are granted, held against what they ask for: nothing is missing, and nothing is superfluous."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

import pytest

from gpushare import names
from gpushare.domain import manifests
from gpushare.domain.manifests import Kind, Manifest
from gpushare.plan.build import build_plan
from gpushare.render.templates import render
from gpushare.sandbox.apiserver.access.authorization import Authorizer, Decision
from gpushare.sandbox.apiserver.requests import Target, User
from gpushare.sandbox.app import Options, Sandbox
from support.clusters import prometheus_kind
from support.snapshots import NOW, SETTINGS, snapshot, time_slicing

NAMESPACE = SETTINGS.namespace
CONTROLLER = f"system:serviceaccount:{NAMESPACE}:{names.CONTROLLER}"
AGENT = f"system:serviceaccount:{NAMESPACE}:{names.SERVICE_ACCOUNT_DEVICE_PLUGIN}"
WAIT_SECONDS = 60.0

Right = tuple[str, str, str]
"""Group, resource and verb."""

OF_OPENSHIFT = {
    ("nvidia.com", "clusterpolicies/finalizers", "update"),
    ("security.openshift.io", "securitycontextconstraints", "use"),
}
"""Asked for by admission plugins that are on there, and not by default; the second by the agents, whom it is granted on to."""


@dataclass
class Requests:
    """What every user has asked for since the start."""

    seen: dict[str, set[Right]] = field(default_factory=dict)
    refused: list[str] = field(default_factory=list)

    def see(self, user: User, target: Target, decision: Decision) -> None:
        # Whether it may grant what it does not hold is asked by the server, which then looks at what it holds.
        if target.is_resource and target.verb not in {"escalate", "bind"}:
            self.seen.setdefault(user.name, set()).add((target.group, target.qualified_resource, target.verb))
            if not decision.allowed and user.name in {CONTROLLER, AGENT}:
                self.refused.append(f"{user.name} {target.verb} {target.path}")


@pytest.fixture
def requests(monkeypatch: pytest.MonkeyPatch) -> Requests:
    seen = Requests()
    decide = Authorizer.decide

    def decided(self: Authorizer, user: User, target: Target) -> Decision:
        decision = decide(self, user, target)
        seen.see(user, target, decision)
        return decision

    monkeypatch.setattr(Authorizer, "decide", decided)
    return seen


class Person:
    """What a person does in the sandbox, and waits for."""

    def __init__(self, sandbox: Sandbox) -> None:
        self.cluster = sandbox.cluster

    async def create_config(self, name: str, namespace: str, **data: str) -> None:
        metadata = {"name": name, "namespace": namespace}
        await self.cluster.create({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data})

    async def name_config(self, name: str, default: str) -> None:
        spec = {"spec": {"devicePlugin": {"config": {"name": name, "default": default}}}}
        assert await self.cluster.patch(manifests.CLUSTER_POLICY, "cluster-policy", spec)

    async def switch_off(self) -> None:
        spec = {"spec": {"devicePlugin": {"enabled": False}}}
        assert await self.cluster.patch(manifests.CLUSTER_POLICY, "cluster-policy", spec)

    async def say_pod_security(self, *, enabled: bool) -> None:
        spec = {"spec": {"psa": {"enabled": enabled}}}
        assert await self.cluster.patch(manifests.CLUSTER_POLICY, "cluster-policy", spec)

        async def is_labelled() -> bool:
            namespace = await self.cluster.get(manifests.NAMESPACE, NAMESPACE)
            return enabled == ("pod-security.kubernetes.io/enforce" in (namespace or {})["metadata"].get("labels", {}))

        await self.until(is_labelled)

    async def until_there(self, kind: Kind, name: str, namespace: str = "") -> Manifest:
        async def there() -> Manifest | None:
            return await self.cluster.get(kind, name, namespace)

        return await self.until(there)

    async def until(self, holds: Callable[[], Awaitable[Any]]) -> Any:
        async with asyncio.timeout(WAIT_SECONDS):
            while True:
                if found := await holds():
                    return found
                await asyncio.sleep(0.02)

    async def until_said(self, text: str) -> None:
        async def said() -> bool:
            policy = await self.cluster.get(manifests.CLUSTER_POLICY, "cluster-policy")
            return text in str((policy or {}).get("status"))

        await self.until(said)

    async def until_gone(self, kind: Kind, name: str, namespace: str = "") -> None:
        async def gone() -> bool:
            return await self.cluster.get(kind, name, namespace) is None

        await self.until(gone)

    async def restart_controller(self) -> None:
        labels = f"app={names.CONTROLLER}"
        [before] = await self.cluster.names(manifests.POD, NAMESPACE, labels=labels)
        await self.cluster.delete(manifests.POD, before, NAMESPACE, grace_seconds=0)
        await self.until_gone(manifests.POD, before, NAMESPACE)


@pytest.mark.timeout(400)
async def test_rights_are_used(requests: Requests) -> None:
    """From the first policy to the last: whatever is granted is asked for, and whatever is asked for is granted."""
    async with Sandbox(Options(nodes=1)) as sandbox:
        await sandbox.ready()
        person = Person(sandbox)
        await person.cluster.create(prometheus_kind())
        await person.create_config("sharing", "default", any=time_slicing(4))
        await person.name_config("sharing", "any")
        await person.until_said("is in namespace default")
        for restart in (True, False):
            await person.create_config("sharing", NAMESPACE, any=time_slicing(4))
            await person.until_said("applied on 1 of 1 GPU node: any")
            await person.cluster.delete(manifests.CONFIG_MAP, "sharing", NAMESPACE)
            await person.until_said("gpu01 keeps any")
            # The second controller finds the Event of the first there already, and counts it up.
            if restart:
                await person.restart_controller()
        await person.say_pod_security(enabled=True)
        await person.say_pod_security(enabled=False)
        monitor = names.SERVICE_DEVICE_PLUGIN
        await person.until_there(manifests.SERVICE_MONITOR, monitor, NAMESPACE)
        # Rather than without a policy, where the garbage collector would be quicker than the controller.
        await person.switch_off()
        for kind, name, namespace in (
            (manifests.GPU_NODE, "gpu01", ""),
            (manifests.RUNTIME_CLASS, "nvidia", ""),
            (manifests.SERVICE_MONITOR, monitor, NAMESPACE),
            (manifests.SERVICE, names.SERVICE_DEVICE_PLUGIN, NAMESPACE),
            (manifests.DAEMON_SET, names.DAEMONSET_DEVICE_PLUGIN, NAMESPACE),
            (manifests.CLUSTER_ROLE, names.CLUSTER_ROLE_AGENT, ""),
            (manifests.CLUSTER_ROLE_BINDING, names.CLUSTER_ROLE_AGENT, ""),
            (manifests.ROLE, names.SERVICE_ACCOUNT_DEVICE_PLUGIN, NAMESPACE),
            (manifests.ROLE_BINDING, names.SERVICE_ACCOUNT_DEVICE_PLUGIN, NAMESPACE),
            (manifests.SERVICE_ACCOUNT, names.SERVICE_ACCOUNT_DEVICE_PLUGIN, NAMESPACE),
        ):
            await person.until_gone(kind, name, namespace)

    controller = rights_of(render("controller", {"namespace": NAMESPACE, "image": "x"}))
    agent = rights_of(render("device-plugin", build_plan(snapshot(), NOW).components[0].values))
    assert requests.refused == []
    assert controller - asked(requests, CONTROLLER) == OF_OPENSHIFT
    assert agent - asked(requests, AGENT) == OF_OPENSHIFT & agent


def asked(requests: Requests, user: str) -> set[Right]:
    """What a user asked for; a server that finds nothing to apply to asks for `create` besides."""
    seen = requests.seen[user]
    return seen | {(group, resource, "create") for group, resource, verb in seen if verb == "patch"}


def rights_of(rendered: list[Manifest]) -> set[Right]:
    return {
        (group, resource, verb)
        for manifest in rendered
        for rule in manifest.get("rules", ())
        for group in rule["apiGroups"]
        for resource in rule["resources"]
        for verb in rule["verbs"]
    }
