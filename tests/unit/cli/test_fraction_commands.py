"""`gpushare inspect`, `top` and `explain`, over files that a cluster might have printed."""

from __future__ import annotations

import io
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from gpushare.cli import commands
from gpushare.domain.fractions import Decision, Dialect, Grant
from support.schedulers import ALIYUN, HAMI, gpu_node, pod

ROOT = Path(__file__).parents[3]
PACKAGE = ROOT / "operator" / "gpushare"
EXAMPLES = ROOT / "examples"
PAGE = ROOT / "docs" / "commands.md"


def node(name: str) -> dict[str, Any]:
    addresses = [{"type": "Hostname", "address": name}, {"type": "InternalIP", "address": "10.0.0.1"}]
    return {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}, "status": {"addresses": addresses}}


def bound(name: str, node: str, *grants: Grant, dialect: Dialect = Dialect.ALIYUN, **limits: int) -> dict[str, Any]:
    """A pod with a decision about its container."""
    found = pod(name, {"name": "c", "resources": {"limits": limits}}, nodeName=node)
    found["metadata"]["uid"] = f"uid-{name}"
    if grants:
        decision = Decision(pod_uid=f"uid-{name}", dialect=dialect, shape="s", containers={"c": grants})
        found["metadata"]["annotations"]["gpushare.dev/decision"] = decision.to_annotation()
    found["status"] = {"phase": "Running", "startTime": "2026-01-01T00:00:00Z"}
    return found


def waiting(name: str, **limits: int) -> dict[str, Any]:
    found = pod(name, {"name": "c", "resources": {"limits": limits}}, schedulerName="gpushare-scheduler")
    found["metadata"]["uid"] = f"uid-{name}"
    condition = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "0/3 nodes"}
    found["status"] = {"phase": "Pending", "conditions": [condition]}
    return found


@pytest.fixture
def cluster(tmp_path: Path) -> str:
    """Two nodes with fractions, one in each dialect, and one without."""
    ack, plain = gpu_node("ack", mode=ALIYUN), gpu_node("plain", mode=None)
    holder = {"namespace": "default", "pod": "whole", "container": "c", "resource": "nvidia.com/gpu", "shares": [1]}
    plain["status"]["allocations"] = [{"index": 1, "containers": [holder]}]
    plain["status"]["devices"][0]["health"] = {"healthy": False, "reason": "XID 79"}
    objects = [
        node("ack"), node("hami"), node("plain"), ack, gpu_node("hami", mode=HAMI), plain,
        bound("four", "ack", Grant("GPU-ack-1", 4096, 0, 4), **{"aliyun.com/gpu-mem": 4}),
        bound("whole", "plain", **{"nvidia.com/gpu": 1}),
        bound("stranger", "ack", **{"aliyun.com/gpu-mem": 5}),
        bound("part", "hami", Grant("GPU-hami-0", 3000, 30), dialect=Dialect.HAMI, **{"nvidia.com/gpumem": 3000}),
        {**bound("done", "ack", Grant("GPU-ack-0", 4096, 0, 4)), "status": {"phase": "Succeeded"}},
        waiting("big", **{"nvidia.com/gpu": 1, "nvidia.com/gpumem": 13000}),
        waiting("misspelt", **{"nvidia.com/gpu": 1, "nvidia.com/gpumemory": 1000}),
        waiting("priority", **{"nvidia.com/priority": 1}),
        waiting("wrong", **{"nvidia.com/gpumem": 3000, "aliyun.com/gpu-mem": 1}),
    ]  # fmt: skip
    path = tmp_path / "cluster.yaml"
    path.write_text(yaml.safe_dump({"apiVersion": "v1", "kind": "List", "items": objects}))
    return str(path)


def run(capsys: pytest.CaptureFixture[str], *words: str, code: int = 0) -> str:
    """What a command prints."""
    errors = io.StringIO()
    assert commands.run(words, stderr=errors) == code
    return capsys.readouterr().out + errors.getvalue()


def test_inspect(cluster: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Each dialect in its own unit; pods that have ended hold nothing, one that nobody decided about is pending."""
    first, second = run(capsys, "inspect", "-f", cluster).split("\n\n")

    assert [line.split() for line in first.splitlines()[:2]] == [
        [
            "NAME",
            "IPADDRESS",
            "GPU0(Allocated/Total)",
            "GPU1(Allocated/Total)",
            "PENDING(Allocated)",
            "GPU",
            "Memory(GiB)",
        ],
        ["ack", "10.0.0.1", "0/15", "4/15", "5", "9/30"],
    ]
    assert second.splitlines()[1].split() == ["hami", "10.0.0.1", "3000/15360", "0/15360", "3000/30720"]


def test_inspect_one(cluster: str, capsys: pytest.CaptureFixture[str]) -> None:
    """One node, with its pods, and as data."""
    text = run(capsys, "inspect", "-d", "ack", "-f", cluster)
    assert ["four", "default", "0", "4", "0"] in [line.split() for line in text.splitlines()]

    (found,) = json.loads(run(capsys, "inspect", "hami", "-o", "json", "-f", cluster))["nodes"]
    assert (found["dialect"], found["isolation"], found["used"]) == ("hami", "none", 3000)

    assert "no node plain that serves fractions" in run(capsys, "inspect", "plain", "-f", cluster, code=2)


def test_top(cluster: str, capsys: pytest.CaptureFixture[str]) -> None:
    """All GPUs, whichever way they are shared, and which of them are not well."""
    lines = [line.split() for line in run(capsys, "top", "plain", "-f", cluster).splitlines()[1:]]

    assert lines == [
        ["plain", "0", "Tesla", "T4", "15360", "MiB", "XID", "79", "-", "-"],
        [
            "plain",
            "1",
            "Tesla",
            "T4",
            "15360",
            "MiB",
            "well",
            "default/whole",
            "(c)",
            "1",
            "share",
            "of",
            "nvidia.com/gpu",
        ],
    ]
    found = json.loads(run(capsys, "top", "-o", "json", "-f", cluster))["gpus"]
    assert [len(gpu["holders"]) for gpu in found if gpu["node"] == "plain"] == [0, 1]
    assert "no GPUNode nowhere" in run(capsys, "top", "nowhere", "-f", cluster, code=2)


def test_top_after_a_change_of_dialect(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Units that a node gave out before it changed over are not the whole GPU."""
    found = gpu_node("hami", mode=HAMI)
    holder = {"namespace": "default", "pod": "old", "container": "c", "resource": "aliyun.com/gpu-mem"}
    found["status"]["allocations"] = [{"index": 0, "containers": [holder]}]
    (tmp_path / "cluster.yaml").write_text(yaml.safe_dump(found))

    shown = run(capsys, "top", "hami", "-f", str(tmp_path / "cluster.yaml"))

    assert "default/old (c)  units of aliyun.com/gpu-mem" in shown


@pytest.mark.parametrize(
    ("name", "says"),
    [
        pytest.param("four", ["has c: GPU 1 (GPU-ack-1)", "confirmed yes", "why this GPU binpack"], id="placed"),
        pytest.param("whole", ["node plain", "has c: 1 share of nvidia.com/gpu, GPU 1"], id="on a node without fractions"),
        pytest.param("stranger", ["decided by nobody of ours"], id="bound by somebody else"),
        pytest.param(
            "big",
            [
                "why it waits Unschedulable: 0/3 nodes", "ack the node serves fractions in the other dialect",
                "plain the node serves no fractions", "hami yes",
            ],
            id="waits, and would fit now",
        ),
        pytest.param("wrong", ["problem spec: asks for both"], id="can never run"),
        pytest.param(
            "misspelt", ["limits[nvidia.com/gpumemory]: no node shows it; did you mean nvidia.com/gpumem?"],
            id="a resource that is misspelt",
        ),
        pytest.param(
            "priority", ["asks for no fraction", "warning spec.containers[0].resources.limits[nvidia.com/priority]: does"],
            id="priority alone",
        ),
        pytest.param("node/hami", ["in HAMi's dialect: 10 slots a GPU", "GPU 0: Tesla T4, 3000 of 15360 MiB"], id="node"),
        pytest.param(
            "plain",
            ["not healthy: XID 79", "pod default/whole (c): 1 share of nvidia.com/gpu, GPU 1"],
            id="node without fractions",
        ),
    ],
)  # fmt: skip
def test_explain(cluster: str, capsys: pytest.CaptureFixture[str], name: str, says: list[str]) -> None:
    """In words, by the scheduler's own rules."""
    text = " ".join(run(capsys, "explain", name, "-f", cluster).split())

    for each in says:
        assert each in text
    assert json.loads(run(capsys, "explain", name, "-o", "json", "-f", cluster))["facts"]


@pytest.mark.parametrize(
    ("status", "says"),
    [
        pytest.param({"phase": "Succeeded"}, "node ack has nothing any more: it has ended", id="done"),
        pytest.param(
            {"phase": "Failed", "reason": "UnexpectedAdmissionError", "message": "Allocate failed"},
            "node ack why it ended UnexpectedAdmissionError: Allocate failed has nothing any more",
            id="refused",
        ),
    ],
)
def test_explain_ended(tmp_path: Path, capsys: pytest.CaptureFixture[str], status: dict[str, Any], says: str) -> None:
    """A pod that has ended holds nothing, whoever has placed it."""
    ended = bound("done", "ack", Grant("GPU-ack-0", 4096, 0, 4), **{"aliyun.com/gpu-mem": 4}) | {"status": status}

    assert says in explained(tmp_path, capsys, "done", node("ack"), gpu_node("ack", mode=ALIYUN), ended)


def test_explain_quota(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """What is left of the quota of the namespace counts, as for the scheduler."""
    quota = {
        "apiVersion": "v1",
        "kind": "ResourceQuota",
        "metadata": {"name": "q", "namespace": "default"},
        "spec": {"hard": {"limits.nvidia.com/gpumem": "4000"}},
    }
    part = bound("part", "hami", Grant("GPU-hami-0", 3000, 0), dialect=Dialect.HAMI, **{"nvidia.com/gpumem": 3000})
    more = waiting("more", **{"nvidia.com/gpu": 1, "nvidia.com/gpumem": 2000})

    text = explained(tmp_path, capsys, "more", node("hami"), gpu_node("hami", mode=HAMI), part, more, quota)

    assert "hami 2 of 2 GPUs: the quota of the namespace is used up" in text


def test_explain_a_node_that_offers_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """As one without the library that is to isolate: its GPUs are free, and nobody gets them."""
    silent = gpu_node("hami", mode=HAMI)
    silent["status"]["resources"] = [{"name": "nvidia.com/gpu", "strategy": "none", "total": 0, "healthy": 0}]

    text = explained(tmp_path, capsys, "small", node("hami"), silent, waiting("small", **{"nvidia.com/gpumem": 1}))

    assert "hami the node offers none: `gpushare explain node/hami` says why" in text


def explained(tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str, *objects: dict[str, Any]) -> str:
    """What `explain` says of a pod, in one line."""
    path = tmp_path / "cluster.yaml"
    path.write_text(yaml.safe_dump_all(objects))
    return " ".join(run(capsys, "explain", name, "-f", str(path)).split())


@pytest.mark.parametrize(
    ("words", "says"),
    [
        pytest.param(("deploy/x",), "pods and nodes can be explained", id="another kind"),
        pytest.param(("nothing",), "no pod default/nothing, and no GPUNode nothing", id="not there"),
        pytest.param(("pod", "four", "-n", "other"), "no pod other/four", id="another namespace"),
    ],
)
def test_explain_what(cluster: str, capsys: pytest.CaptureFixture[str], words: tuple[str, ...], says: str) -> None:
    """What cannot be explained is said, and what to write instead."""
    assert says in run(capsys, "explain", *words, "-f", cluster, code=2)


def test_unreadable(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A file that is none is named."""
    (tmp_path / "x.yaml").write_text("a: [")

    for command in (("inspect",), ("top",), ("explain", "x")):
        assert "x.yaml" in run(capsys, *command, "-f", str(tmp_path / "x.yaml"), code=2)
        assert "nowhere" in run(capsys, *command, "-f", "nowhere", code=2)


def test_pod_that_a_person_wrote(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """It need not have been in a cluster: what the API server fills in is taken for granted."""
    file = tmp_path / "pod.yaml"
    file.write_text("apiVersion: v1\nkind: Pod\nmetadata: {name: a}\nspec: {containers: [{name: c, resources: "
                    "{limits: {nvidia.com/gpumem: 3000}}}]}\n")  # fmt: skip

    assert "c: 1 GPU, 3000 MiB" in run(capsys, "explain", "a", "-f", str(file))


def test_gpu_node_of_another_version(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """It is named, whatever there is in it that we do not know."""
    file = tmp_path / "node.yaml"
    file.write_text(
        "apiVersion: gpushare.dev/v1alpha1\nkind: GPUNode\nmetadata: {name: a}\nspec: {config: {reason: new}}\n"
    )

    for command in (("inspect",), ("top",), ("explain", "a")):
        assert "GPUNode a is not as this version writes it" in run(capsys, *command, "-f", str(file), code=2)


@pytest.mark.parametrize(
    "words",
    [
        pytest.param(("inspect", "-f", "CLUSTER"), id="inspect"),
        pytest.param(("top", "-f", "CLUSTER"), id="top"),
        pytest.param(("explain", "big", "-f", "CLUSTER"), id="explain"),
        pytest.param(("topology", "-f", "NODE"), id="topology"),
        pytest.param(("allocate", "2", "-f", "NODE"), id="allocate"),
        pytest.param(("validate", "BROKEN"), id="validate"),
        pytest.param(("plan", "--offline", "NODES", "-f", "CHANGE"), id="plan"),
    ],
)
def test_keys_for_programs_are_documented(
    cluster: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], words: tuple[str, ...]
) -> None:
    """Each key that is printed stands on the page of the commands, and each that stands there is written somewhere."""
    (tmp_path / "nodes.yaml").write_text("nodes: [{name: gpu01, gpus: [{model: Tesla-T4, count: 4}]}]\n")
    change = ["01-time-slicing/time-slicing-config-all.yaml", "10-beside-nvidias-operator/sharing-policy.yaml"]
    (tmp_path / "change.yaml").write_text("---\n".join((EXAMPLES / file).read_text() for file in change))
    files = {
        "CLUSTER": cluster,
        "NODE": str(EXAMPLES / "05-topologies" / "dgx1-volta.yaml"),
        "BROKEN": str(EXAMPLES / "04-bad-input" / "broken-configs.yaml"),
        "NODES": str(tmp_path / "nodes.yaml"),
        "CHANGE": str(tmp_path / "change.yaml"),
    }
    (row,) = (line for line in PAGE.read_text().splitlines() if line.startswith(f"| `{words[0]}` | `"))
    told = set(re.findall(r"\w+", " ".join(re.findall(r"`([^`]+)`", row)))) - {words[0]}

    output = run(capsys, *(files.get(word, word) for word in words), "-o", "json", code=int(words[0] == "validate"))

    assert set(keys_of(json.loads(output))) <= told
    code = "".join(
        path.read_text() for path in [*sorted(PACKAGE.glob("views/*.py")), PACKAGE / "domain" / "gpunode.py"]
    )
    assert [word for word in told if f'"{word}"' not in code] == []


def keys_of(value: Any) -> Iterator[str]:
    """All keys, but for names of what is told of: nodes, labels, resources, GPUs."""
    if isinstance(value, list):
        for each in value:
            yield from keys_of(each)
    for key, inner in value.items() if isinstance(value, dict) else ():
        yield key
        is_named = key in {"labels", "facts", "held"} or (key in {"nodes", "gpus"} and isinstance(inner, dict))
        if key == "resources":
            yield from inner
        elif is_named:
            yield from keys_of(list(inner.values()))
        else:
            yield from keys_of(inner)
