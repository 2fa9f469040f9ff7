"""Roll-outs as people see them: the brake, and Nodes that do not show their shares, by kubectl in a whole sandbox."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
import yaml

from gpushare.plan import capacity
from gpushare.sandbox.app import Options, Sandbox
from support import commands
from support.releases import Person as Administrator
from support.snapshots import time_slicing

NAMESPACE = "gpu-operator"
PATIENCE = 120.0
CONTROLLER = "deployment/gpu-sharing-operator"
TOO_MANY = time_slicing(4).replace("replicas: 4", "replicas: 4\n      devices: [9]\n      rename: nvidia.com/few")
"""No node has a GPU with the index 9."""


def config_map(text: str) -> dict[str, Any]:
    metadata = {"name": "sharing", "namespace": NAMESPACE}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"any": text}}


class Person(Administrator):
    """Somebody who shares GPUs, and looks."""

    async def typed(self, *args: str, typed: str = "") -> str:
        """What kubectl prints. It must end well."""
        done = await self.kubectl(*args, typed=typed)
        assert done.returncode == 0, done.stderr
        return done.stdout

    async def share(self, text: str) -> None:
        """Creates the ConfigMap, or edits it."""
        await self.typed("apply", "-f", "-", typed=yaml.safe_dump(config_map(text)))

    async def brake(self, **variables: str) -> None:
        """Sets variables of the controller, and waits until it runs with them."""
        words = [f"{name}={value}" for name, value in variables.items()]
        await self.typed("set", "env", CONTROLLER, *words)
        await self.typed("rollout", "status", CONTROLLER, f"--timeout={PATIENCE:.0f}s")

    async def shown(self) -> dict[str, str]:
        """What each Node shows."""
        nodes = json.loads(await self.typed("get", "nodes", "-o", "json"))["items"]
        return {node["metadata"]["name"]: node["status"]["capacity"].get("nvidia.com/gpu", "") for node in nodes}

    async def condition(self, name: str) -> dict[str, Any]:
        policy = json.loads(await self.typed("get", "clusterpolicy", "cluster-policy", "-o", "json"))
        return next(each for each in policy["status"]["conditions"] if each["type"] == name)

    async def until_said(self, *texts: str, name: str = "RolledOut") -> str:
        """Waits until a condition of the policy says all of that."""
        message = ""
        try:
            async with asyncio.timeout(PATIENCE):
                while True:
                    message = (await self.condition(name))["message"]
                    if all(text in message for text in texts):
                        return message
                    await asyncio.sleep(0.1)
        except TimeoutError:
            raise AssertionError(f"waited in vain for {texts}; last: {message}") from None

    async def until_shares(self, **expected: str) -> None:
        found: dict[str, str] = {}
        try:
            async with asyncio.timeout(PATIENCE):
                while (found := await self.shown()) != found | expected:  # noqa: ASYNC110 - as people look
                    await asyncio.sleep(0.1)
        except TimeoutError:
            raise AssertionError(f"waited in vain for {expected}; last: {found}") from None


@pytest.fixture
async def person() -> AsyncIterator[Person]:
    """Before a sandbox of three nodes with four GPUs each, cut into two, of which gpu01 is a canary."""
    async with Sandbox(Options(nodes=3)) as sandbox:
        await sandbox.ready()
        person = Person(sandbox)
        await person.typed("label", "node", "gpu01", "pool=canary")
        await person.share(time_slicing(2))
        patch = {"spec": {"devicePlugin": {"config": {"name": "sharing", "default": "any"}}}}
        await person.typed("patch", "clusterpolicy", "cluster-policy", "--type=merge", "-p", json.dumps(patch))
        await person.until_shares(gpu01="8", gpu02="8", gpu03="8")
        yield person


@pytest.mark.timeout(600)
async def test_canary(person: Person) -> None:
    """What the canary refuses reaches nobody; once it has applied what is corrected, the others follow."""
    await person.brake(ROLLOUT_CANARY="pool=canary")

    await person.share(TOO_MANY)
    said = await person.until_said("1 refused, 2 held back", 'gpu01 cannot run "any"')
    assert "gpu02, gpu03 keep what they have: canary node gpu01 cannot use what was named" in said
    assert await person.shown() == {"gpu01": "8", "gpu02": "8", "gpu03": "8"}
    assert (await person.condition("RolledOut"))["reason"] == "Refused"

    await person.share(time_slicing(4))
    await person.until_said("applied on 3 of 3 GPU nodes: any")
    await person.until_shares(gpu01="16", gpu02="16", gpu03="16")


@pytest.mark.timeout(600)
async def test_preview(person: Person, tmp_path: Path) -> None:
    """`gpushare plan` tells the steps before, as the controller that runs there takes them, and where they end."""
    await person.brake(ROLLOUT_CANARY="pool=canary")
    at = ("--kubeconfig", str(person.kubeconfig))

    for text, code, said in (
        (time_slicing(4), 0, "roll-out: gpu01; then gpu02, gpu03"),
        (TOO_MANY, 1, "gpu03: warning: keeps what it has: canary node gpu01 cannot use what was named"),
    ):
        file = tmp_path / "change.yaml"
        file.write_text(yaml.safe_dump(config_map(text)))
        done = await asyncio.to_thread(commands.run, "plan", *at, "-f", str(file))
        assert (done.returncode, said in done.stdout) == (code, True), done.stdout


@pytest.mark.timeout(600)
async def test_canary_that_is_away(person: Person) -> None:
    """While a canary cannot tell, the others wait, and the policy says for whom; who takes its label away goes on."""
    await person.brake(ROLLOUT_CANARY="pool=canary")
    await person.typed("label", "node", "gpu01", "nvidia.com/gpu.deploy.device-plugin=broken", "--overwrite")
    await person.until_said("applied on 2 of 2 GPU nodes")

    await person.share(time_slicing(4))
    await person.until_said(
        "2 held back", "no agent runs on canary node gpu01; let it, or give the labels of canary nodes"
    )
    assert (await person.shown())["gpu02"] == "8"

    await person.typed("label", "node", "gpu02", "pool=canary")
    await person.until_shares(gpu02="16", gpu03="16")


@pytest.mark.timeout(600)
async def test_stop_on_refusal(person: Person) -> None:
    """The first that refuses is the last that is asked, and the preview says so before."""
    await person.brake(ROLLOUT_STOP_ON_REFUSAL="true")

    await person.share(TOO_MANY)
    said = await person.until_said("1 refused, 2 held back")
    assert "gpu02, gpu03 keep what they have: stopped, since node gpu01 refuses it" in said

    await person.share(time_slicing(3))
    await person.until_shares(gpu01="12", gpu02="12", gpu03="12")


def pod(number: int) -> dict[str, Any]:
    """One share of gpu01."""
    container = {"name": "c", "image": "cuda", "resources": {"limits": {"nvidia.com/gpu": "1"}}}
    spec = {"nodeSelector": {"kubernetes.io/hostname": "gpu01"}, "containers": [container]}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": f"user-{number}"}, "spec": spec}


@pytest.mark.timeout(600)
async def test_shrinking(person: Person) -> None:
    """A node that refuses to shrink is named on the policy with the pods, and follows when enough of them are gone."""
    pods = [pod(number) for number in range(6)]
    await person.typed("apply", "-n", "default", "-f", "-", typed=yaml.safe_dump_all(pods))
    await person.typed("wait", "-n", "default", "--for=condition=Ready", "pods", "--all", f"--timeout={PATIENCE:.0f}s")

    await person.share("version: v1\ngpushare: {onShrink: refuse}\n")
    said = await person.until_said(
        "applied on 2 of 3 GPU nodes (1 refused)", "in use by default/user-0, default/user-1"
    )
    assert (
        'gpu01 cannot run "any" and keeps what was there: gpushare.onShrink: 6 of nvidia.com/gpu are in use by ' in said
    )
    assert "and 1 more and only 4 would be left; delete pods first" in said
    assert await person.shown() == {"gpu01": "8", "gpu02": "4", "gpu03": "4"}

    await person.typed("delete", "pod", "-n", "default", "user-0", "user-1")
    await person.until_shares(gpu01="4")
    await person.until_said("applied on 3 of 3 GPU nodes: any")


@pytest.mark.timeout(600)
async def test_capacity(person: Person, monkeypatch: pytest.MonkeyPatch) -> None:
    """A Node that goes on showing something else is named with both numbers, on policy, GPUNode and in an Event."""
    monkeypatch.setattr(capacity, "GRACE", timedelta(seconds=2))
    shown = {"status": {"capacity": {"nvidia.com/gpu": "3"}, "allocatable": {"nvidia.com/gpu": "3"}}}
    await person.typed("patch", "node", "gpu02", "--subresource=status", "--type=merge", "-p", json.dumps(shown))

    text = "the Node shows 3 of nvidia.com/gpu, where 8 are offered"
    await person.until_said("1 waiting", f"waiting for gpu02 ({text})")
    assert text in await person.typed("describe", "gpunode", "gpu02")
    assert "CapacityDiffers" in await person.typed("describe", "node", "gpu02")

    shown["status"] = {part: {"nvidia.com/gpu": "8"} for part in shown["status"]}
    await person.typed("patch", "node", "gpu02", "--subresource=status", "--type=merge", "-p", json.dumps(shown))
    await person.until_said("applied on 3 of 3 GPU nodes: any")
    assert "CapacityShown" not in await person.typed("get", "gpunode", "gpu02", "-o", "yaml")


@pytest.mark.timeout(400)
async def test_the_next_policy(person: Person) -> None:
    """A policy that is deleted for the next one, and orphans what it had, takes no agent with it."""
    policy = json.loads(await person.typed("get", "clusterpolicy", "cluster-policy", "-o", "json"))
    following = {**policy, "metadata": {"name": "next-policy"}, "status": {}}
    await person.typed("create", "-f", "-", typed=json.dumps(following))
    pods = await person.pods()

    await person.typed("delete", "clusterpolicy", "cluster-policy", "--cascade=orphan")

    await person.typed("wait", "clusterpolicy", "next-policy", "--for=jsonpath={.status.state}=ready", "--timeout=120s")
    owner = "{.metadata.ownerReferences[*].name}"
    agents = "daemonset/nvidia-device-plugin-daemonset"
    await person.typed("wait", agents, f"--for=jsonpath={owner}=next-policy", "--timeout=120s")
    assert await person.pods() == pods
    assert await person.shown() == {"gpu01": "8", "gpu02": "8", "gpu03": "8"}
