"""How an agent comes to its cluster, or does not start at all."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping
from pathlib import Path

import pytest

from gpushare.agent import app
from gpushare.nvml.simulated import SimulatedNvml

IN_CLUSTER = {"KUBERNETES_SERVICE_HOST": "127.0.0.1", "KUBERNETES_SERVICE_PORT": "1"}
KUBECONFIG = """
current-context: c
contexts: [{name: c, context: {cluster: c}}]
clusters: [{name: c, cluster: {server: "http://127.0.0.1:1"}}]
"""


def mount_account(root: Path) -> None:
    """As far as a kubelet gets that is interrupted."""
    folder = root / "var/run/secrets/kubernetes.io/serviceaccount"
    folder.mkdir(parents=True)
    (folder / "token").write_text("secret")


async def run(root: Path, argv: list[str], environ: Mapping[str, str]) -> int:
    """To its end, which for an agent that starts is at once."""
    stop = asyncio.Event()
    stop.set()
    nvml = SimulatedNvml.from_mapping({})
    return await app.run(argv, environ, root=root, nvml=nvml, log=logging.getLogger("test"), stop=stop)


@pytest.mark.parametrize(
    ("argv", "environ", "reason"),
    [
        pytest.param(["--nonsense"], {}, "unknown flag", id="flag"),
        pytest.param([], IN_CLUSTER, "the node's name is not known", id="no node name"),
        pytest.param([], {**IN_CLUSTER, "NODE_NAME": "n"}, "ca.crt", id="half an account"),
        pytest.param(["--kubeconfig=/none"], {"NODE_NAME": "n"}, "/none", id="no kubeconfig"),
    ],
)
async def test_wrong_usage(
    tmp_path: Path, argv: list[str], environ: dict[str, str], reason: str, caplog: pytest.LogCaptureFixture
) -> None:
    """Ends with 2 and says why."""
    mount_account(tmp_path)
    assert await run(tmp_path, argv, environ) == 2
    assert [record.message for record in caplog.records] == ["wrong usage"]
    assert reason in caplog.records[0].__dict__["reason"]


async def test_kubeconfig(tmp_path: Path) -> None:
    """A path on the host, below its root."""
    (tmp_path / "kubeconfig").write_text(KUBECONFIG)

    assert await run(tmp_path, ["--kubeconfig", "/kubeconfig", "--node-name=n"], {}) == 0


@pytest.mark.parametrize("environ", [pytest.param({}, id="no pod"), pytest.param(IN_CLUSTER, id="no account")])
async def test_no_cluster(tmp_path: Path, environ: dict[str, str], caplog: pytest.LogCaptureFixture) -> None:
    """Said once; a pod without a service account is no reason to end, and needs no node's name."""
    caplog.set_level(logging.INFO)

    assert await run(tmp_path, [], environ) == 0
    assert caplog.messages.count("no cluster: neither a kubeconfig nor an account was given") == 1
