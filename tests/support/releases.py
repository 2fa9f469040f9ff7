"""A person with helm and kubectl, before a cluster without the operator."""

from __future__ import annotations

import asyncio
import contextlib
import os
import subprocess
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

from gpushare import names
from gpushare.domain import manifests
from gpushare.domain.manifests import Kind, Manifest
from gpushare.sandbox.app import Options, Sandbox
from support import helm
from support.kubectl_suites import find_kubectl

WAIT_SECONDS = 120.0


class Person:
    """Who installs, shares, upgrades and uninstalls."""

    def __init__(self, sandbox: Sandbox) -> None:
        self.cluster = sandbox.cluster
        self.kubeconfig = sandbox.kubeconfig

    async def run_helm(self, *args: str | Path) -> str:
        more = ("--kubeconfig", self.kubeconfig, "--namespace", helm.NAMESPACE)
        got = await asyncio.to_thread(helm.run, *args, *more)
        assert got.returncode == 0, got.stdout + got.stderr
        return got.stdout

    async def kubectl(self, *args: str | Path, typed: str = "") -> subprocess.CompletedProcess[str]:
        """Runs kubectl to its end, whatever that is; `typed` is its standard input."""
        program = find_kubectl("1.36")
        assert program is not None
        return await self.run(program, "--namespace", helm.NAMESPACE, *map(str, args), typed=typed)

    async def run(self, *line: str, typed: str = "") -> subprocess.CompletedProcess[str]:
        """Runs a program that finds the cluster by its environment."""
        environ = {**os.environ, "KUBECONFIG": str(self.kubeconfig)}
        return await asyncio.to_thread(
            subprocess.run,
            line,
            input=typed,
            env=environ,
            capture_output=True,
            text=True,
            check=False,
            timeout=WAIT_SECONDS,
        )

    async def until(self, holds: Callable[[], Awaitable[bool]]) -> None:
        async with asyncio.timeout(WAIT_SECONDS):
            while True:
                if await holds():
                    return
                await asyncio.sleep(0.05)

    async def all(self, kind: Kind, namespace: str = helm.NAMESPACE) -> list[Manifest]:
        return list((await self.cluster.list(kind, namespace if kind.namespaced else "")).items)

    async def shares(self) -> set[str]:
        nodes = await self.all(manifests.NODE)
        return {node["status"].get("allocatable", {}).get(names.RESOURCE_GPU, "0") for node in nodes}

    async def pods(self) -> dict[str, tuple[str, int]]:
        """Uid and restarts of each pod."""
        return {
            pod["metadata"]["name"]: (
                pod["metadata"]["uid"],
                sum(status["restartCount"] for status in pod["status"].get("containerStatuses", ())),
            )
            for pod in await self.all(manifests.POD)
        }


@contextlib.asynccontextmanager
async def cluster(*, nodes: int) -> AsyncIterator[Person]:
    """Nodes that are registered, and nothing installed."""
    async with Sandbox(Options(nodes=nodes, has_operator=False)) as sandbox:
        person = Person(sandbox)

        async def registered() -> bool:
            return len(await person.all(manifests.NODE)) == nodes

        await person.until(registered)
        yield person


def manifest_of(kind: Kind, name: str, **content: Any) -> Manifest:
    metadata = {"name": name, **({"namespace": helm.NAMESPACE} if kind.namespaced else {})}
    return {"apiVersion": kind.api_version, "kind": kind.kind, "metadata": metadata, **content}
