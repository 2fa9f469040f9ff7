"""What people type, against the embedded server: every answer is that of a real Kubernetes 1.36.3.

The suites ran against a real control plane with the same stand-in for kubelets; `recorded.json` holds its masked answers.
"""

import asyncio
import contextlib
import json
import logging
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from gpushare.kube.credentials import Credentials
from gpushare.kube.lean import LeanCluster
from gpushare.sandbox import scheduling, workloads
from gpushare.sandbox.apiserver.server import ApiServer, Settings
from integration.apiserver.differences import compared
from support import kubectl_suites
from support.kubectl_suites import Answer
from support.standin_kubelets import StandinKubelets, serving_logs

HERE = Path(__file__).parent
SUITES = ("preload", "everyday", "lists", "timeslicing")
"""In this order: each goes on where the one before it ended."""
RECORDED = {name: Answer(**answer) for name, answer in json.loads((HERE / "recorded.json").read_text()).items()}
RECORDED_PORT = "20250"
"""Of the kubelets, in the suites and in the recorded answers."""
LOG = logging.getLogger("test")
KUBECTL = kubectl_suites.find_kubectl("1.36", "1.37")
"""The recorded answers are those of kubectl 1.36; 1.37 prints the same."""

pytestmark = [
    pytest.mark.timeout(600),
    pytest.mark.skipif(KUBECTL is None, reason="no kubectl 1.36 or 1.37; set KUBECTL"),
]


@contextlib.asynccontextmanager
async def running_cluster() -> AsyncIterator[tuple[ApiServer, int]]:
    """A server with controllers, a scheduler and kubelets; and the port of the kubelets."""
    server = await ApiServer.start(Settings())
    stop = asyncio.Event()
    users = ("system:kube-controller-manager", "system:kube-scheduler", "admin")
    clusters = [
        LeanCluster(Credentials(server=server.url, ca=server.ca_pem, token=server.token(user))) for user in users
    ]
    async with serving_logs(server.authority) as port:
        jobs = [
            asyncio.create_task(workloads.run(clusters[0], LOG, stop)),
            asyncio.create_task(scheduling.run(clusters[1], LOG, stop)),
            asyncio.create_task(StandinKubelets(clusters[2], LOG).run()),
        ]
        try:
            yield server, port
        finally:
            stop.set()
            jobs[-1].cancel()
            await asyncio.gather(*jobs, return_exceptions=True)
            for cluster in clusters:
                await cluster.close()
            await server.stop()


async def run_suites(folder: Path, kubeconfig: dict[str, Any], port: int) -> dict[str, Answer]:
    """All answers of a server whose kubelets have this port."""
    answers = {}
    path = folder / "kubeconfig"
    path.write_text(yaml.safe_dump(kubeconfig).replace("sandbox", "c"))
    for suite in SUITES:
        steps = kubectl_suites.load(HERE / "suites" / f"{suite}.yaml", {RECORDED_PORT: str(port)})
        answers |= await kubectl_suites.run(steps, kubectl=KUBECTL, kubeconfig=path, folder=folder / suite)
    return {name: Answer(each.exit, each.text.replace(str(port), RECORDED_PORT)) for name, each in answers.items()}


async def run_embedded(folder: Path) -> dict[str, Answer]:
    """All answers of the embedded server."""
    async with running_cluster() as (server, port):
        return await run_suites(folder, server.kubeconfig("u", ("system:masters",)), port)


@pytest.fixture(scope="module")
def answers(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Answer]:
    return asyncio.run(run_embedded(tmp_path_factory.mktemp("suites")))


@pytest.mark.parametrize("case", [pytest.param(name, id=name) for name in RECORDED])
def test_answer(case: str, answers: dict[str, Answer]) -> None:
    """Exit code and text are those of a real server."""
    answer, recorded = compared(case, answers[case]), compared(case, RECORDED[case])
    assert answer.text == recorded.text
    assert answer.exit == recorded.exit
