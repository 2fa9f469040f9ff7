"""Every example is what it says: kubectl takes it, strictly, and its configurations are good, or bad on purpose."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import yaml

from gpushare import data
from gpushare.api.parsing import parse_sharing
from gpushare.kube import credentials
from gpushare.kube.lean import LeanCluster
from gpushare.sandbox import installing
from gpushare.sandbox.apiserver.server import ApiServer, Settings
from gpushare.sandbox.tour import engine

EXAMPLES = data.path_of("examples")
OBJECTS = [
    pytest.param(path, id=path.relative_to(EXAMPLES).as_posix())
    for path in sorted(EXAMPLES.rglob("*.yaml"))
    if path.parent.name != "05-topologies"  # descriptions of nodes, run by the tests of `gpushare topology`
]
CONFIGURATIONS = [
    pytest.param(path.parent.name, text, id=f"{path.parent.name}/{key}")
    for path in sorted(EXAMPLES.rglob("*.yaml"))
    for manifest in yaml.safe_load_all(path.read_text())
    if manifest.get("kind") == "ConfigMap"
    for key, text in manifest["data"].items()
]


@pytest.fixture
async def kubeconfig(tmp_path: Path) -> AsyncIterator[Path]:
    """A server that knows this project's kinds."""
    server, path = await ApiServer.start(Settings()), tmp_path / "kubeconfig"
    path.write_text(yaml.safe_dump(server.kubeconfig(namespace=installing.NAMESPACE)))
    cluster = LeanCluster(credentials.from_kubeconfig(path))
    await installing.install_definitions(cluster)
    yield path
    await cluster.close()
    await server.stop()


@pytest.mark.parametrize("path", OBJECTS)
async def test_kubectl_takes_it(kubeconfig: Path, path: Path) -> None:
    """An unknown field, a wrong type, a number where text belongs: kubectl would refuse each."""
    process = await asyncio.create_subprocess_exec(
        str(engine.find_kubectl()), "--kubeconfig", str(kubeconfig), "apply", "--dry-run=server", "-f", str(path),
        stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT,
    )  # fmt: skip
    output, _ = await process.communicate()

    assert process.returncode == 0, output.decode()


@pytest.mark.parametrize(("folder", "text"), CONFIGURATIONS)
def test_configuration(folder: str, text: str) -> None:
    """Good, unless the folder is about bad ones; an empty text is bad only in a ConfigMap."""
    is_good = not parse_sharing(text).problems and bool(text.strip())

    assert is_good is (folder != "04-bad-input")
