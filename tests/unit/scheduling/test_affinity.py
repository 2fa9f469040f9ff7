"""Node selectors and node affinity."""

from __future__ import annotations

import pytest

from gpushare.sandbox.scheduling import affinity
from support import workload_objects as objects

T4 = objects.node("gpu01", labels={"product": "T4", "gpus": "4"})


def required(*terms):
    return {
        "affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}}
    }


def expressions(*each):
    return {
        "matchExpressions": [{"key": key, "operator": operator, "values": values} for key, operator, *values in each]
    }


def named(*names):
    return {"matchFields": [{"key": "metadata.name", "operator": "In", "values": list(names)}]}


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        pytest.param({}, True, id="no wishes"),
        pytest.param({"nodeSelector": None, "affinity": None}, True, id="nulls"),
        pytest.param({"nodeSelector": {"product": "T4"}}, True, id="selector"),
        pytest.param({"nodeSelector": {"product": "A100"}}, False, id="other value"),
        pytest.param({"nodeSelector": {"zone": "a"}}, False, id="label is missing"),
        pytest.param(
            required(expressions(("gpus", "Gt", "2"), ("product", "In", "T4", "A100"))), True, id="all of a term"
        ),
        pytest.param(
            required(expressions(("gpus", "Gt", "2"), ("product", "In", "A100"))), False, id="not all of a term"
        ),
        pytest.param(required(expressions(("zone", "Exists")), expressions(("gpus", "Exists"))), True, id="any term"),
        pytest.param(required({}), False, id="an empty term takes nothing"),
        pytest.param(required(named("gpu01")), True, id="by name"),
        pytest.param(required(named("gpu02")), False, id="by another name"),
        pytest.param({"nodeSelector": {"product": "A100"}} | required(named("gpu01")), False, id="both count"),
    ],
)
def test_is_wanted(spec, expected):
    """A node is wanted when it passes the selector and one required term."""
    assert affinity.is_wanted(spec, T4) is expected


def test_preference():
    """The weights of the preferred terms that a node passes add up."""
    terms = [
        {"weight": 10, "preference": expressions(("product", "In", "T4"))},
        {"weight": 5, "preference": expressions(("gpus", "Exists"))},
        {"weight": 100, "preference": expressions(("product", "In", "A100"))},
    ]
    spec = {"affinity": {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": terms}}}

    assert affinity.preference(spec, T4) == 15
    assert affinity.preference({}, T4) == 0


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        pytest.param({}, None, id="free"),
        pytest.param(required(named("gpu01")), {"gpu01"}, id="one name"),
        pytest.param(required(named("gpu01"), named("gpu02")), {"gpu01", "gpu02"}, id="one of two"),
        pytest.param(required(named("gpu01"), expressions(("gpus", "Exists"))), None, id="or by label"),
    ],
)
def test_pinned_names(spec, expected):
    """A pod is pinned when each of its terms names nodes."""
    assert affinity.pinned_names(spec) == expected
