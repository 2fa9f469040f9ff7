"""What `kubectl get` prints."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import hypothesis.strategies as st
import pytest
from hypothesis import given

from gpushare.domain.manifests import Manifest
from gpushare.sandbox.apiserver import kinds
from gpushare.sandbox.apiserver.objects import jsonpaths, times
from gpushare.sandbox.apiserver.resources import Resource
from gpushare.sandbox.apiserver.tables import building

NOW = datetime(2026, 11, 1, 0, 1, tzinfo=UTC)
CREATED = "2026-11-01T00:00:00Z"
BUILT_IN = {(resource.group, resource.plural): resource for resource in kinds.built_in()}


def row(key: tuple[str, str], obj: Manifest) -> dict[str, Any]:
    """The cells of an object by column name."""
    whole = {**obj, "metadata": {"name": "x", "creationTimestamp": CREATED, **obj.get("metadata", {})}}
    table = building.build(BUILT_IN[key], [whole], NOW)
    names = [column["name"] for column in table["columnDefinitions"]]
    return dict(zip(names, table["rows"][0]["cells"], strict=True))


@pytest.mark.parametrize("key", sorted(BUILT_IN))
def test_every_kind_has_a_table(key: tuple[str, str]) -> None:
    """An object that says nothing is shown all the same, with a cell a column."""
    bare = {"roleRef": {"kind": "Role", "name": "r"}, "kind": "X"}

    assert "x" in row(key, bare).values()


NODE = {
    "metadata": {"labels": {"node-role.kubernetes.io/worker": ""}},
    "spec": {"unschedulable": True},
    "status": {
        "conditions": [{"type": "Ready", "status": "True"}],
        "addresses": [{"type": "InternalIP", "address": "127.0.0.1"}, {"type": "Hostname", "address": "n"}],
        "nodeInfo": {
            "kubeletVersion": "v1.36.3",
            "osImage": "Debian",
            "kernelVersion": "6.1.0",
            "architecture": "amd64",
            "containerRuntimeVersion": "containerd://2.1",
        },
    },
}


@pytest.mark.parametrize(
    ("key", "obj", "expected"),
    [
        pytest.param(
            ("", "nodes"), NODE,
            ["x", "Ready,SchedulingDisabled", "worker", "60s", "v1.36.3", "127.0.0.1", "<none>", "Debian", "6.1.0 (amd64)",
             "containerd://2.1"],
            id="node",
        ),
        pytest.param(("", "configmaps"), {"data": {"a": ""}, "binaryData": {"b": ""}}, ["x", 2, "60s"], id="config map"),
        pytest.param(
            ("apps", "daemonsets"),
            {"spec": {"template": {"spec": {"nodeSelector": {"a": "b"}, "containers": [{"name": "c", "image": "i"}]}},
                      "selector": {"matchLabels": {"app": "x"}}}, "status": {"desiredNumberScheduled": 2}},
            ["x", 2, 0, 0, 0, 0, "a=b", "60s", "c", "i", "app=x"],
            id="daemon set",
        ),
        pytest.param(
            ("apps", "deployments"), {"spec": {"replicas": 5}, "status": {"readyReplicas": 3, "updatedReplicas": 5}},
            ["x", "3/5", 5, 0, "60s", "", "", "<none>"], id="deployment",
        ),
        pytest.param(
            ("batch", "jobs"),
            {"spec": {"completions": 1}, "status": {"succeeded": 1, "startTime": CREATED,
             "completionTime": "2026-11-01T00:00:05Z", "conditions": [{"type": "Complete", "status": "True"}]}},
            ["x", "Complete", "1/1", "5s", "60s", "", "", "<none>"], id="job",
        ),
        pytest.param(
            ("", "events"),
            {"involvedObject": {"kind": "Pod", "name": "p"}, "type": "Warning", "reason": "R", "message": " m\n", "count": 3,
             "lastTimestamp": "2026-11-01T00:00:30Z", "firstTimestamp": CREATED, "source": {"component": "s"}},
            ["30s", "Warning", "R", "pod/p", "", "s", "m", "60s", 3, "x"], id="event",
        ),
        pytest.param(
            ("", "services"),
            {"spec": {"type": "ClusterIP", "clusterIP": "10.96.0.1", "clusterIPs": ["10.96.0.1"],
                      "ports": [{"port": 80, "protocol": "TCP"}, {"port": 81, "nodePort": 30081, "protocol": "UDP"}]}},
            ["x", "ClusterIP", "10.96.0.1", "<none>", "80/TCP,81:30081/UDP", "60s", "<none>"], id="service",
        ),
        pytest.param(
            ("policy", "poddisruptionbudgets"), {"spec": {"minAvailable": 1}}, ["x", 1, "N/A", 0, "60s"], id="budget"
        ),
        pytest.param(("node.k8s.io", "runtimeclasses"), {"handler": "nvidia"}, ["x", "nvidia", "60s"], id="runtime class"),
        pytest.param(
            ("apps", "controllerrevisions"),
            {"revision": 2, "metadata": {"ownerReferences": [
                {"apiVersion": "apps/v1", "kind": "DaemonSet", "name": "d", "controller": True}]}},
            ["x", "daemonset.apps/d", 2, "60s"], id="revision",
        ),
    ],
)  # fmt: skip
def test_cells(key: tuple[str, str], obj: Manifest, expected: list[Any]) -> None:
    """Cells as a real server fills them."""
    assert list(row(key, obj).values()) == expected


def waiting(reason: str) -> dict[str, Any]:
    return {"state": {"waiting": {"reason": reason}}}


RUNNING = {"state": {"running": {}}, "ready": True}
DONE = {"state": {"terminated": {"exitCode": 0, "reason": "Completed"}}}


@pytest.mark.parametrize(
    ("status", "metadata", "expected"),
    [
        pytest.param({"phase": "Pending"}, {}, "Pending", id="phase"),
        pytest.param({"phase": "Running", "containerStatuses": [RUNNING]}, {}, "Running", id="running"),
        pytest.param(
            {"phase": "Pending", "containerStatuses": [waiting("ErrImagePull")]}, {}, "ErrImagePull", id="waiting"
        ),
        pytest.param(
            {"phase": "Failed", "reason": "UnexpectedAdmissionError"},
            {},
            "UnexpectedAdmissionError",
            id="refused by a node",
        ),
        pytest.param({"phase": "Succeeded", "containerStatuses": [DONE]}, {}, "Completed", id="done"),
        pytest.param(
            {"phase": "Running", "containerStatuses": [DONE, RUNNING]}, {}, "NotReady", id="one of two is done"
        ),
        pytest.param(
            {"containerStatuses": [{"state": {"terminated": {"exitCode": 3}}}]}, {}, "ExitCode:3", id="exit code"
        ),
        pytest.param({"containerStatuses": [{"state": {"terminated": {"signal": 9}}}]}, {}, "Signal:9", id="signal"),
        pytest.param({"initContainerStatuses": [{"state": {"running": {}}}]}, {}, "Init:0/1", id="initializing"),
        pytest.param(
            {"initContainerStatuses": [waiting("CrashLoopBackOff")]}, {}, "Init:CrashLoopBackOff", id="init waits"
        ),
        pytest.param({"initContainerStatuses": [DONE], "phase": "Pending"}, {}, "Pending", id="initialized"),
        pytest.param({"phase": "Running"}, {"deletionTimestamp": "t"}, "Terminating", id="terminating"),
        pytest.param({"phase": "Succeeded"}, {"deletionTimestamp": "t"}, "Succeeded", id="ended before"),
    ],
)
def test_pod_status(status: dict[str, Any], metadata: dict[str, Any], expected: str) -> None:
    """One word for all that a pod can be."""
    pod = {"spec": {"containers": [{}], "initContainers": [{}]}, "status": status, "metadata": metadata}
    assert row(("", "pods"), pod)["Status"] == expected


def test_pod_counts() -> None:
    """Ready containers, restarts and when the last one was, address and node."""
    container = {**RUNNING, "restartCount": 2, "lastState": {"terminated": {"finishedAt": "2026-11-01T00:00:50Z"}}}
    pod = {
        "spec": {"containers": [{}, {}], "nodeName": "n", "readinessGates": [{"conditionType": "g"}]},
        "status": {"phase": "Running", "containerStatuses": [container], "podIP": "10.0.0.1"},
    }
    cells = row(("", "pods"), pod)

    assert (cells["Ready"], cells["Restarts"]) == ("1/2", "2 (10s ago)")
    assert (cells["IP"], cells["Node"], cells["Nominated Node"], cells["Readiness Gates"]) == (
        "10.0.0.1",
        "n",
        "<none>",
        "0/1",
    )


COLUMNS = [
    {"name": "Mode", "type": "string", "jsonPath": ".spec.mode"},
    {"name": "Shares", "type": "integer", "jsonPath": ".status.shares"},
    {"name": "Ready", "type": "string", "jsonPath": '.status.conditions[?(@.type=="Ready")].status'},
    {"name": "Since", "type": "date", "jsonPath": ".status.since", "priority": 1},
]


@pytest.mark.parametrize(
    ("obj", "expected"),
    [
        pytest.param(
            {"spec": {"mode": "time"}, "status": {"shares": 4, "since": CREATED,
             "conditions": [{"type": "Ready", "status": "True"}]}},
            ["x", "time", 4, "True", "60s"], id="all",
        ),
        pytest.param({"spec": {}}, ["x", None, None, None, None], id="nothing"),
        pytest.param({"spec": {"mode": 1}, "status": {"shares": "four", "since": 5}}, ["x", "1", None, None, "<invalid>"],
                     id="wrong types"),
    ],
)  # fmt: skip
def test_declared_columns(obj: Manifest, expected: list[Any]) -> None:
    """Custom kinds have the columns that their definition names."""
    versions = [{"name": "v1", "additionalPrinterColumns": COLUMNS}]
    kind = Resource(
        group="x.io", version="v1", kind="W", plural="ws", namespaced=False, definition={"spec": {"versions": versions}}
    )
    table = building.build(kind, [{"metadata": {"name": "x"}, **obj}], NOW)

    assert table["rows"][0]["cells"] == expected
    assert [(column["name"], column["priority"]) for column in table["columnDefinitions"]] == [
        ("Name", 0), ("Mode", 0), ("Shares", 0), ("Ready", 0), ("Since", 1),
    ]  # fmt: skip


def test_no_columns_declared() -> None:
    """Without any, there is the age."""
    kind = Resource(
        group="x.io",
        version="v1",
        kind="W",
        plural="ws",
        namespaced=False,
        definition={"spec": {"versions": [{"name": "v1"}]}},
    )

    assert building.build(kind, [{"metadata": {"name": "x", "creationTimestamp": CREATED}}], NOW)["rows"] == [
        {"cells": ["x", "60s"]}
    ]


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        pytest.param(".a.b", [1], id="fields"),
        pytest.param("$.a.b", [1], id="from the root"),
        pytest.param(".a['x/y']", [2], id="quoted"),
        pytest.param(r".a.z\.w", [3], id="escaped"),
        pytest.param(".l[*].n", ["p", "q"], id="every"),
        pytest.param(".l[-1].n", ["q"], id="last"),
        pytest.param('.l[?(@.n=="q")].v', [6], id="filter"),
        pytest.param(".none.b", [], id="nothing there"),
        pytest.param(".a[", [], id="no path"),
    ],
)
def test_json_paths(path: str, expected: list[Any]) -> None:
    """What definitions may write as a path."""
    obj = {"a": {"b": 1, "x/y": 2, "z.w": 3}, "l": [{"n": "p", "v": 5}, {"n": "q", "v": 6}]}
    assert expected == jsonpaths.find(obj, path)


@pytest.mark.parametrize(
    ("seconds", "expected"),
    [
        (0, "0s"), (119, "119s"), (120, "2m"), (121, "2m1s"), (600, "10m"), (601, "10m"), (10799, "179m"), (10800, "3h"),
        (11000, "3h3m"), (28800, "8h"), (172799, "47h"), (172800, "2d"), (180000, "2d2h"), (691200, "8d"), (63071999, "729d"),
        (63072000, "2y"), (70000000, "2y80d"), (-1, "0s"), (-5, "<invalid>"),
    ],
)  # fmt: skip
def test_durations(seconds: int, expected: str) -> None:
    """The longer, the rougher."""
    assert expected == times.duration(timedelta(seconds=seconds))


@given(st.datetimes(datetime(1970, 1, 1), datetime(2100, 1, 1)))  # noqa: DTZ001 - the zone comes with the text
def test_times_and_back(moment: datetime) -> None:
    """Normal forms are their own normal forms."""
    micros = times.normal_micros(f"{moment.isoformat(timespec='microseconds')}Z")

    assert micros == times.normal_micros(micros)
    assert times.normal_seconds(micros) == f"{micros[:19]}Z"


@pytest.mark.parametrize(
    "text", ["", "2026-11-01", "2026-13-01T00:00:00Z", "2026-11-01T00:00:00Zx", "2026-11-31T00:00:00Z"]
)
def test_no_times(text: str) -> None:
    """What is no time is quoted."""
    with pytest.raises(times.TimeError, match=f'parsing time "{text}" as'):
        times.parse(text)
