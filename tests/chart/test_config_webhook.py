"""Broken sharing configurations, refused while somebody applies them: real helm, real kubectl, the controller's own webhook."""

from __future__ import annotations

import base64
from collections.abc import AsyncIterator

import pytest
import yaml

from gpushare import names
from gpushare.domain import manifests
from support import helm, releases
from support.releases import Person
from support.snapshots import time_slicing

BROKEN = time_slicing(4).replace("replicas", "replica")


@pytest.fixture
async def person() -> AsyncIterator[Person]:
    async with releases.cluster(nodes=1) as person:
        await person.run_helm(
            "install", helm.RELEASE, helm.CHART, "--create-namespace", "--set", "configWebhook.enabled=true"
        )
        yield person


def config_map(name: str, labels: dict[str, str] | None = None, **data: str) -> str:
    """A manifest as people write it."""
    return yaml.safe_dump(
        releases.manifest_of(manifests.CONFIG_MAP, name, data=data)
        | ({"metadata": {"name": name, "labels": labels}} if labels else {})
    )


async def is_trusted(person: Person) -> bool:
    """The API server has been told whom to believe, and somebody answers it."""
    found = await person.cluster.get(manifests.VALIDATING_WEBHOOK_CONFIGURATION, names.CONFIG_WEBHOOK)
    assert found is not None
    [pod] = await person.all(manifests.POD) or [{"status": {}}]
    conditions = {each["type"]: each["status"] for each in pod["status"].get("conditions", ())}
    return "caBundle" in found["webhooks"][0]["clientConfig"] and conditions.get("Ready") == "True"


@pytest.mark.timeout(400)
async def test_refused_when_applied(person: Person) -> None:
    """What the policy names is judged at once; what nobody uses is not, unless its label says what it is for."""
    await person.until(lambda: is_trusted(person))
    policy = {"devicePlugin": {"config": {"name": "sharing", "default": "any"}}}
    required = ("operator", "daemonsets", "driver", "toolkit", "dcgm", "dcgmExporter", "nodeStatusExporter", "gfd")
    await person.cluster.create(
        releases.manifest_of(manifests.CLUSTER_POLICY, "p", spec={**{key: {} for key in required}, **policy})
    )

    async def is_refused() -> bool:
        got = await person.kubectl("apply", "--dry-run=server", "-f", "-", typed=config_map("sharing", any=BROKEN))
        return got.returncode != 0

    # The controller hears of the policy a moment later than we.
    await person.until(is_refused)
    got = await person.kubectl("apply", "-f", "-", typed=config_map("sharing", any=BROKEN, empty=""))
    assert 'admission webhook "configs.gpushare.dev" denied the request' in got.stderr
    assert 'any: sharing.timeSlicing.resources[0].replica (line 6): unknown key; did you mean "replicas"?' in got.stderr
    assert "empty: it is empty" in got.stderr
    assert await person.cluster.get(manifests.CONFIG_MAP, "sharing", helm.NAMESPACE) is None

    got = await person.kubectl("apply", "-f", "-", typed=config_map("sharing", other=time_slicing(2)))
    assert got.returncode == 0
    assert 'Warning: the policy names "any" as default' in got.stderr
    got = await person.kubectl("apply", "-f", "-", typed=config_map("sharing", any=time_slicing(2)))
    assert (got.returncode, got.stderr) == (0, "")

    got = await person.kubectl("apply", "-f", "-", typed=config_map("mine", any=BROKEN))
    assert got.returncode == 0
    labelled = config_map("mine", {names.LABEL_SHARING_CONFIG: "true"}, any=BROKEN)
    assert (await person.kubectl("apply", "-f", "-", typed=labelled)).returncode != 0


@pytest.mark.timeout(400)
async def test_nobody_answers(person: Person) -> None:
    """Without a controller everything is let through, and the certificate is kept for the next one."""
    await person.until(lambda: is_trusted(person))
    scaled = await person.kubectl("scale", "deployment", names.CONTROLLER, "--replicas=0")
    assert scaled.returncode == 0

    async def is_gone() -> bool:
        return not await person.all(manifests.POD)

    await person.until(is_gone)
    labelled = config_map("mine", {names.LABEL_SHARING_CONFIG: "true"}, any=BROKEN)
    assert (await person.kubectl("apply", "-f", "-", typed=labelled)).returncode == 0
    secret = await person.cluster.get(manifests.SECRET, names.CONFIG_WEBHOOK, helm.NAMESPACE)
    assert secret is not None
    assert base64.b64decode(secret["data"]["tls.crt"]).startswith(b"-----BEGIN CERTIFICATE")
