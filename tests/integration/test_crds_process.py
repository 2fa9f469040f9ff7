"""`gpushare crds`: CRDs that are not there, that are old, and that may not be touched."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from gpushare.controller import definitions
from gpushare.domain import manifests
from gpushare.domain.manifests import Manifest
from gpushare.kube.credentials import from_kubeconfig
from gpushare.kube.lean import LeanCluster
from gpushare.render import templates
from gpushare.sandbox.apiserver.server import ApiServer, Settings

LOG = logging.getLogger("crds")
NAMES = sorted(each["metadata"]["name"] for each in templates.read_definitions())


class Person:
    """An administrator, before an API server without our CRDs."""

    def __init__(self, server: ApiServer, folder: Path) -> None:
        self._server = server
        self._folder = folder
        self.cluster = LeanCluster(from_kubeconfig(self.kubeconfig()))

    def kubeconfig(self, user: str = "admin") -> Path:
        path = self._folder / user
        path.write_text(yaml.safe_dump(self._server.kubeconfig(user)))
        return path

    async def run(self, *argv: str, user: str = "admin", stop: bool = False) -> int:
        stopping = asyncio.Event()
        if stop:
            stopping.set()
        argv = ("--kubeconfig", str(self.kubeconfig(user)), *argv)
        return await definitions.run(argv, {}, root=self._folder, log=LOG, stop=stopping)

    async def definition(self, name: str) -> Manifest:
        found = await self.cluster.get(manifests.CUSTOM_RESOURCE_DEFINITION, name)
        assert found is not None
        return found


@pytest.fixture
async def person(tmp_path: Path) -> AsyncIterator[Person]:
    server = await ApiServer.start(Settings())
    person = Person(server, tmp_path)
    yield person
    await person.cluster.close()
    await server.stop()


async def test_created_and_replaced(person: Person) -> None:
    """What is missing is created, what is old is replaced as a whole, and what is right stays as it is."""
    assert await person.run() == 0
    created = [await person.definition(name) for name in NAMES]

    older: Any = await person.definition(NAMES[0])
    properties = older["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"]
    properties["retired"] = {"type": "string"}
    del properties["cdi"]
    await person.cluster.replace(older)
    assert await person.run() == 0

    again = [await person.definition(name) for name in NAMES]
    assert [each["spec"] for each in again] == [each["spec"] for each in created]
    assert again[1]["metadata"]["resourceVersion"] == created[1]["metadata"]["resourceVersion"]


async def test_forbidden(person: Person, caplog: pytest.LogCaptureFixture) -> None:
    """Who may not is told so at once, and the exit code says that nothing was done."""
    assert await person.run(user="nobody") == 1
    assert "customresourcedefinitions" in str(caplog.records[-1].__dict__["reason"])


async def test_stopped(person: Person) -> None:
    """An end that is asked for comes at once."""
    assert await person.run(stop=True) in {0, 1}


@pytest.mark.parametrize(
    "argv", [pytest.param(["--what"], id="no such flag"), pytest.param(["--timeout-seconds=0"], id="no time")]
)
async def test_wrong_usage(person: Person, argv: list[str]) -> None:
    """Exit code 2, as of every command."""
    assert await person.run(*argv) == 2


async def test_no_pod(tmp_path: Path) -> None:
    """Outside of a cluster somebody has to say which one is meant."""
    assert await definitions.run([], {}, root=tmp_path, log=LOG, stop=asyncio.Event()) == 2
