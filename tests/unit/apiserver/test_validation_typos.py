"""Words that people misspell in pods and workloads: refused where they are written, in the words of Kubernetes 1.36.3."""

from __future__ import annotations

from typing import Any

import pytest

from gpushare.sandbox.apiserver.kinds import built_in
from gpushare.sandbox.apiserver.resources import Resource
from gpushare.sandbox.apiserver.validation import affinity, checking, strategies

RESOURCES = {each.kind: each for each in built_in()}
TERMS = "a.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms"
HERE = f"{TERMS}[0].matchExpressions[0]"
HOST_PATH = {"path": "/", "type": "X"}
HOST_PATH_TYPES = '"", "BlockDevice", "CharDevice", "Directory", "DirectoryOrCreate", "File", "FileOrCreate", "Socket"'
PERCENT = (
    "a valid percent string must be a numeric string followed by an ending '%' (e.g. '1%',  or '93%', regex used for "
    "validation is '[0-9]+%')"
)


def required(*expressions: dict[str, Any], **term: Any) -> dict[str, Any]:
    terms = [{"matchExpressions": [*expressions], **term}] if expressions or term else []
    return {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}


def preferred(weight: int) -> dict[str, Any]:
    return {"preferredDuringSchedulingIgnoredDuringExecution": [{"weight": weight, "preference": {}}]}


@pytest.mark.parametrize(
    ("wanted", "expected"),
    [
        pytest.param(required({"key": "a", "operator": "In", "values": ["b"]}), [], id="good"),
        pytest.param(required({"key": "a", "operator": "Gt", "values": ["1"]}), [], id="number"),
        pytest.param(preferred(100), [], id="good preference"),
        pytest.param(required(), [f"{TERMS}: Required value: must have at least one node selector term"], id="no term"),
        pytest.param(
            required({"key": "a", "operator": "Foo"}),
            [f'{TERMS}[0].matchExpressions[0].operator: Invalid value: "Foo": not a valid selector operator'],
            id="operator",
        ),
        pytest.param(
            required({"key": "a", "operator": "In"}),
            [
                f"{TERMS}[0].matchExpressions[0].values: Required value: must be specified when `operator` is 'In' or 'NotIn'"
            ],
            id="in nothing",
        ),
        pytest.param(
            required({"key": "a", "operator": "Exists", "values": ["x"]}),
            [
                f"{HERE}.values: Forbidden: may not be specified when `operator` is 'Exists' or 'DoesNotExist'",
            ],
            id="exists as something",
        ),
        pytest.param(
            required({"key": "a", "operator": "Gt", "values": ["1", "2"]}),
            [
                f"{HERE}.values: Required value: must be specified single value when `operator` is 'Lt' or 'Gt'",
            ],
            id="greater than two",
        ),
        pytest.param(
            required(matchFields=[{"key": "foo", "operator": "In", "values": ["n"]}]),
            [f'{TERMS}[0].matchFields[0].key: Invalid value: "foo": not a valid field selector key'],
            id="field",
        ),
        pytest.param(
            preferred(0),
            [
                "a.preferredDuringSchedulingIgnoredDuringExecution[0].weight: Invalid value: 0: must be in the range 1-100"
            ],
            id="weight",
        ),
    ],
)
def test_node_affinity(wanted: dict[str, Any], expected: list[str]) -> None:
    """A pod that no node could ever please."""
    assert list(map(str, affinity.check_node_affinity(wanted, "a"))) == expected


def test_key_and_value() -> None:
    """Labels that no node can have."""
    wanted = required({"key": "a b", "operator": "In", "values": ["c d"]})
    found = [str(each) for each in affinity.check_node_affinity(wanted, "a")]
    assert [each.partition(":")[0] for each in found] == [
        f"{TERMS}[0].matchExpressions[0].key", f"{TERMS}[0].matchExpressions[0].values[0]",
    ]  # fmt: skip


def rolling(**amounts: object) -> dict[str, Any]:
    return {"type": "RollingUpdate", "rollingUpdate": amounts}


@pytest.mark.parametrize(
    ("strategy", "expected"),
    [
        pytest.param(rolling(maxUnavailable="100%", maxSurge=0), [], id="good"),
        pytest.param(rolling(maxUnavailable=0, maxSurge=1), [], id="new ones first"),
        pytest.param({"type": "OnDelete", "rollingUpdate": {"maxUnavailable": 0}}, [], id="by hand"),
        pytest.param(
            {"type": "X"},
            [': Unsupported value: {"Type":"X","RollingUpdate":null}: supported values: "RollingUpdate", "OnDelete"'],
            id="type",
        ),
        pytest.param(
            rolling(maxUnavailable="0%"),
            [".rollingUpdate.maxUnavailable: Required value: cannot be 0 when maxSurge is 0"], id="none"
        ),
        pytest.param(
            rolling(maxUnavailable=1, maxSurge=1),
            [".rollingUpdate.maxSurge: Invalid value: 1: may not be set when maxUnavailable is non-zero"],
            id="both",
        ),
        pytest.param(
            rolling(maxUnavailable="5"),
            [f'.rollingUpdate.maxUnavailable: Invalid value: "5": {PERCENT}'], id="a number as a text"
        ),
        pytest.param(
            rolling(maxUnavailable="200%"),
            ['.rollingUpdate.maxUnavailable: Invalid value: "200%": must not be greater than 100%'],
            id="more than all",
        ),
        pytest.param(
            rolling(maxUnavailable=-1),
            [".rollingUpdate.maxUnavailable: Invalid value: -1: must be greater than or equal to 0"],
            id="negative",
        ),
    ],
)  # fmt: skip
def test_update_strategy(strategy: dict[str, Any], expected: list[str]) -> None:
    """How a DaemonSet replaces its pods."""
    found = list(map(str, strategies.check_daemon_set(strategy)))
    assert found == [f"spec.updateStrategy{each}" for each in expected]


@pytest.mark.parametrize(
    ("strategy", "expected"),
    [
        pytest.param(rolling(maxUnavailable="25%", maxSurge="25%"), [], id="good"),
        pytest.param({"type": "Recreate"}, [], id="all at once"),
        pytest.param(
            {"type": "X"},
            [': Unsupported value: {"Type":"X","RollingUpdate":null}: supported values: "Recreate", "RollingUpdate"'],
            id="type",
        ),
        pytest.param(
            {"type": "Recreate", "rollingUpdate": {"maxSurge": 1}},
            [".rollingUpdate: Forbidden: may not be specified when strategy `type` is 'Recreate'"],
            id="amounts of nothing",
        ),
        pytest.param(
            rolling(maxUnavailable=0, maxSurge=0),
            [".rollingUpdate.maxUnavailable: Invalid value: 0: may not be 0 when `maxSurge` is 0"],
            id="none",
        ),
    ],
)  # fmt: skip
def test_strategy(strategy: dict[str, Any], expected: list[str]) -> None:
    """How a Deployment replaces its pods."""
    assert list(map(str, strategies.check_deployment(strategy))) == [f"spec.strategy{each}" for each in expected]


@pytest.mark.parametrize(
    ("kind", "obj", "expected"),
    [
        pytest.param("RuntimeClass", {"handler": "nvidia-cdi"}, [], id="handler"),
        pytest.param("RuntimeClass", {}, ["handler: Required value"], id="no handler"),
        pytest.param("PriorityClass", {"value": 1_000_000_000}, [], id="priority"),
        pytest.param(
            "PriorityClass", {"value": 1_000_000_001},
            ["value: Forbidden: maximum allowed value of a user defined priority is 1000000000"], id="too important",
        ),
        pytest.param(
            "Pod",
            {"spec": {"containers": [{"name": "c", "image": "i"}], "volumes": [{"name": "v", "hostPath": HOST_PATH}]}},
            [f'spec.volumes[0].hostPath.type: Unsupported value: "X": supported values: {HOST_PATH_TYPES}'],
            id="host path",
        ),
    ],
)  # fmt: skip
def test_kinds(kind: str, obj: dict[str, Any], expected: list[str]) -> None:
    """Single words of other kinds."""
    resource: Resource = RESOURCES[kind]
    namespace = {"namespace": "default"} if resource.namespaced else {}
    found = checking.check(resource, {**obj, "metadata": {"name": "x", **namespace}})
    assert list(map(str, found)) == expected
