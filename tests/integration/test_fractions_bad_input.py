"""What people do wrong with fractions, and what breaks, typed with real kubectl in a whole sandbox: each says what to do."""

from __future__ import annotations

import base64
import json
import subprocess
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from gpushare import names
from gpushare.serving.certificates import Authority
from support import commands
from support.clusters import NAMESPACE
from support.kubectl_suites import find_kubectl
from support.schedulers import pod

KUBECTL = find_kubectl("1.35", "1.36")
HAMI_NODE, ALIYUN_NODE = "gpu01", "gpu02"
WAIT_SECONDS = 120.0
SCHEDULER = ("-n", NAMESPACE, f"deployment/{names.SCHEDULER}")
pytestmark = [
    pytest.mark.skipif(KUBECTL is None, reason="no kubectl"),
    pytest.mark.timeout(600),
]


@dataclass(frozen=True)
class Shell:
    """Types commands."""

    kubeconfig: Path

    def type(self, *words: str, sent: Mapping[str, Any] | None = None) -> tuple[int, str]:
        """Exit code, and all that is shown."""
        assert KUBECTL is not None
        done = subprocess.run(
            [KUBECTL, "--kubeconfig", str(self.kubeconfig), *words],
            input=json.dumps(sent) if sent else "",
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=WAIT_SECONDS,
            check=False,
        )
        return done.returncode, done.stdout

    def until(self, says: str, *words: str, sent: Mapping[str, Any] | None = None) -> str:
        """Types the same until something is shown."""
        end = time.monotonic() + WAIT_SECONDS
        while says not in (shown := self.type(*words, sent=sent)[1]):
            assert time.monotonic() < end, shown
            time.sleep(0.2)
        return shown

    def apply(self, name: str, *limits: Mapping[str, str], **more: Any) -> tuple[int, str]:
        """Creates a pod, with a container for each."""
        containers = [
            {"name": f"c{number}", "image": "cuda", "resources": {"limits": dict(each)}}
            for number, each in enumerate(limits)
        ]
        return self.type("create", "-f", "-", sent=pod(name, *containers, **more))


@pytest.fixture(scope="module")
def shell(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shell]:
    """A sandbox with a node in each dialect."""
    kubeconfig = tmp_path_factory.mktemp("sandbox") / "kubeconfig"
    with commands.sandbox(kubeconfig):
        shell = Shell(kubeconfig)
        shell.type("label", "node", HAMI_NODE, f"{names.LABEL_HAMI_NODE}=on")
        shell.type("label", "node", ALIYUN_NODE, f"{names.LABEL_ACK_SCHEDULE}=cgpu")
        for node, dialect in ((HAMI_NODE, "hami"), (ALIYUN_NODE, "aliyun")):
            shell.until(dialect, "get", "gpunode", node, "-o", "jsonpath={.status.fractions.dialect}")
        shell.type("rollout", "status", *SCHEDULER, "--timeout=120s")
        yield shell


def hami(**amounts: str) -> dict[str, str]:
    return {f"nvidia.com/{name}": amount for name, amount in amounts.items()}


@pytest.mark.parametrize(
    ("limits", "says"),
    [
        pytest.param([hami(gpu="1", gpumem="-5")], "-5 is negative; write 0 or more", id="negative"),
        pytest.param([hami(gpu="1", gpumem="1.5")], "is not whole; write a whole number", id="fractional"),
        pytest.param([hami(gpu="1", gpumem="9223372036854775808")], "is more than there can be", id="overflowing"),
        pytest.param([hami(gpumem="1e30")], "1e30 is more than there can be", id="overflowing by far"),
        pytest.param([{"nvidia.com/gpumem-percentage": "101"}], "101 is more than all; write 1 to 100", id="percent"),
        pytest.param([hami(gpu="0", gpumem="3000")], "for no GPU; write how many", id="memory without a GPU"),
        pytest.param(
            [hami(gpumem="3000"), {"aliyun.com/gpu-mem": "3"}],
            "no node serves together; write all containers in one of the two dialects",
            id="both dialects",
        ),
        pytest.param([{"aliyun.com/gpu-mem": "3", "aliyun.com/gpu-core.percentage": "200"}], "step of 5", id="compute"),
        pytest.param([{"aliyun.com/gpu-count": "1"}], "only says how many GPUs a node has", id="a count alone"),
    ],
)
def test_refused(shell: Shell, limits: list[dict[str, str]], says: str) -> None:
    """What can never be is refused at once, with the path and what to write."""
    code, shown = shell.apply("refused", *limits)

    assert code == 1, shown
    assert says in shown


def test_forged(shell: Shell) -> None:
    """A decision that somebody else wrote."""
    code, shown = shell.apply("forged", hami(gpumem="3000"), annotations={names.ANNOTATION_DECISION: "{}"})

    assert code == 1, shown
    assert f"{names.ANNOTATION_DECISION} is the scheduler's to write; leave it out" in shown


def test_more_than_there_is(shell: Shell) -> None:
    """More GPUs than a node has, and more memory than a GPU has: the pod waits, and its event says for what."""
    assert shell.apply("many", hami(gpu="50", gpumem="1000"))[0] == 0
    assert shell.apply("more", hami(gpu="5", gpumem="1000"))[0] == 0
    assert shell.apply("big", hami(gpu="1", gpumem="400000"))[0] == 0

    shell.until("Insufficient nvidia.com/gpu", "describe", "pod", "many")
    shell.until("4/5 NodeInsufficientDevice", "describe", "pod", "more")
    shell.until("4/4 CardInsufficientMemory", "describe", "pod", "big")
    shell.type("delete", "pod", "many", "more", "big")


@pytest.mark.parametrize(
    ("limits", "says"),
    [
        pytest.param(
            hami(gpu="1", gpumemory="1000"),
            "limits[nvidia.com/gpumemory]: no node shows it; did you mean nvidia.com/gpumem?",
            id="misspelt",
        ),
        pytest.param(
            hami(priority="1"), "limits[nvidia.com/priority]: does nothing without a part of a GPU", id="priority"
        ),
    ],
)
def test_explained(shell: Shell, limits: dict[str, str], says: str) -> None:
    """What nobody can refuse, since it is no request for a fraction, waits; `gpushare explain` says what is wrong with it."""
    assert shell.apply("odd", limits)[0] == 0
    shell.until("Insufficient nvidia.com/", "describe", "pod", "odd")

    assert says in commands.run("explain", "odd", "--kubeconfig", str(shell.kubeconfig)).stdout
    shell.type("delete", "pod", "odd")


def test_unknown_mode(shell: Shell) -> None:
    """The node keeps what it has, and says which words are known."""
    shell.type("label", "node", ALIYUN_NODE, f"{names.LABEL_ACK_SCHEDULE}=gpushare", "--overwrite")
    shown = shell.until("UnknownMode", "describe", "gpunode", ALIYUN_NODE)

    assert 'ack.node.gpu.schedule says "gpushare", which is not known; write one of default, cgpu' in shown
    assert "UnknownMode" in shell.type("get", "gpunode", ALIYUN_NODE)[1]
    assert shell.type("get", "gpunode", ALIYUN_NODE, "-o", "jsonpath={.status.fractions.dialect}")[1] == "aliyun"
    shell.type("label", "node", ALIYUN_NODE, f"{names.LABEL_ACK_SCHEDULE}=cgpu", "--overwrite")


def test_scheduler_is_away(shell: Shell) -> None:
    """Pods that ask for fractions wait with an event, new ones are not created in part; nobody else notices."""
    assert shell.apply("waiting", hami(gpu="1", gpumem="400000"))[0] == 0
    shell.until("CardInsufficientMemory", "describe", "pod", "waiting")
    shell.type("scale", *SCHEDULER, "--replicas=0")
    shell.until("No resources found", "get", "pods", "-n", NAMESPACE, "-l", f"app={names.SCHEDULER}")
    shell.type("label", "node", HAMI_NODE, "example.com/rack=r1", "--overwrite")  # what makes a scheduler look again

    shell.until("connection refused", "describe", "pod", "waiting")
    assert "no endpoints available for service" in shell.apply("new", hami(gpumem="1000"))[1]
    assert shell.apply("plain", {})[0] == 0
    shell.until("Running", "get", "pod", "plain")

    shell.type("scale", *SCHEDULER, "--replicas=1")
    shell.type("rollout", "status", *SCHEDULER, "--timeout=120s")
    shell.until("pod/new created", "create", "-f", "-", sent=_small("new"))
    shell.until("Running", "get", "pod", "new")
    shell.type("delete", "pod", "waiting", "new", "plain")


def test_expired_certificate(shell: Shell) -> None:
    """A scheduler that finds one makes another, and tells those who must trust it; nobody has to do anything."""
    past = datetime.now(UTC) - timedelta(days=800)
    authority = Authority.create("old", life=timedelta(days=365), now=past)
    pair = authority.issue("old", [f"{names.SCHEDULER}.{NAMESPACE}.svc"], life=timedelta(days=90), now=past)
    texts = {
        "tls.crt": pair.certificate,
        "tls.key": pair.key,
        "ca.crt": authority.pem,
        "ca.key": authority.pair.key,
    }
    data = {name: base64.b64encode(text.encode()).decode() for name, text in texts.items()}
    code, shown = shell.type(
        "patch", "secret", "-n", NAMESPACE, names.SECRET_SCHEDULER, "--type=merge", "-p", json.dumps({"data": data})
    )
    assert code == 0, shown

    shell.type("rollout", "restart", *SCHEDULER)
    shell.type("rollout", "status", *SCHEDULER, "--timeout=120s")

    shell.until("pod/trusting created", "create", "-f", "-", sent=_small("trusting"))
    shell.until("Running", "get", "pod", "trusting")
    kept = shell.type("get", "secret", "-n", NAMESPACE, names.SECRET_SCHEDULER, "-o", r"jsonpath={.data.tls\.crt}")[1]
    assert kept != data["tls.crt"]
    shell.type("delete", "pod", "trusting")


def _small(name: str) -> dict[str, Any]:
    return pod(name, {"name": "c", "image": "cuda", "resources": {"limits": hami(gpu="1", gpumem="1000")}})
