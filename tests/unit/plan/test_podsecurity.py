"""Labels of the operator's namespace."""

from __future__ import annotations

from typing import Any

import pytest

from gpushare.plan.build import build_plan
from gpushare.plan.reading import pod_security_of
from support.snapshots import NOW, policy, snapshot

PRIVILEGED = {f"pod-security.kubernetes.io/{mode}": "privileged" for mode in ("enforce", "audit", "warn")}
WANTED = {"psa": {"enabled": True}}


@pytest.mark.parametrize(
    ("spec", "stored", "expected"),
    [
        pytest.param({}, {}, None, id="never wanted"),
        pytest.param(WANTED, {}, PRIVILEGED, id="wanted"),
        pytest.param(WANTED, PRIVILEGED, None, id="there"),
        pytest.param(WANTED, {**PRIVILEGED, "pod-security.kubernetes.io/warn": "x"}, PRIVILEGED, id="changed by hand"),
        pytest.param({}, PRIVILEGED, {}, id="no longer wanted"),
        pytest.param({**WANTED, "devicePlugin": {"enabled": False}}, PRIVILEGED, {}, id="nothing to let in"),
    ],
)
def test_change(spec: dict[str, Any], stored: dict[str, str], expected: dict[str, str] | None) -> None:
    """Only what differs is written, and what is no longer wanted goes."""
    plan = build_plan(snapshot(policies=(policy(**spec),), pod_security=stored), NOW)

    assert plan.pod_security == expected


def test_without_a_policy() -> None:
    """They go with the policy."""
    assert build_plan(snapshot(policies=(), pod_security=PRIVILEGED), NOW).pod_security == {}


def test_read() -> None:
    """Ours are those that our own field manager applied."""
    owned = {"f:metadata": {"f:labels": {"f:a": {}, "f:gone": {}}}}
    managed = [
        {"manager": "gpushare-controller", "operation": "Apply", "fieldsV1": owned},
        {"manager": "kubectl", "operation": "Update", "fieldsV1": {"f:metadata": {"f:labels": {"f:b": {}}}}},
    ]

    assert pod_security_of({"metadata": {"labels": {"a": "1", "b": "2"}, "managedFields": managed}}) == {"a": "1"}
