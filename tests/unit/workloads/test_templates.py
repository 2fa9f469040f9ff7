"""Pod templates."""

from __future__ import annotations

import re

import hypothesis.strategies as st
import pytest
from hypothesis import given

from gpushare.domain import manifests
from gpushare.sandbox.workloads import templates
from support import workload_objects as objects


@given(st.dictionaries(st.text(max_size=5), st.text(max_size=5), max_size=4), st.integers(0, 3))
def test_build_hash(template, collisions):
    """A hash is short, fit for a name, and does not depend on the order of keys."""
    reordered = dict(reversed(template.items()))

    assert re.fullmatch("[456789bcdf]{1,10}", templates.build_hash(template, collisions))
    assert templates.build_hash(template, collisions) == templates.build_hash(reordered, collisions)
    assert templates.build_hash(template) != templates.build_hash(template, 1)


def test_build_pod():
    """A pod has what its template says, a name to be made up, and one owner; the template stays as it was."""
    owner = objects.workload("ReplicaSet", "web")
    template = owner["spec"]["template"]
    template["metadata"]["annotations"] = {"note": "x"}
    pod = templates.build_pod(owner, manifests.REPLICA_SET, template, {"hash": "1"})
    pod["spec"]["nodeName"] = "gpu01"

    assert pod["metadata"] == {
        "generateName": "web-",
        "namespace": "default",
        "labels": {"app": "web", "hash": "1"},
        "annotations": {"note": "x"},
        "ownerReferences": [objects.reference(owner)],
    }
    assert "nodeName" not in template["spec"]


@pytest.mark.parametrize(
    ("value", "round_up", "expected"),
    [(3, True, 3), ("3", True, 3), ("25%", True, 2), ("25%", False, 1), ("100%", False, 5), ("0%", True, 0)],
)
def test_scaled(value, round_up, expected):
    """Percentages are of the size, rounded as asked."""
    assert templates.scaled(value, 5, round_up=round_up) == expected
