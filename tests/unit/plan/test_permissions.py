"""Which rights are missing, from what roles say and what the API server grants."""

from __future__ import annotations

import pytest

from gpushare.plan import permissions
from gpushare.plan.permissions import Right

ROLE = {
    "rules": [
        {"apiGroups": [""], "resources": ["nodes"], "verbs": ["list", "patch"]},
        {"apiGroups": ["nvidia.com"], "resources": ["clusterpolicies/status"], "verbs": ["patch"]},
        {"apiGroups": ["nvidia.com"], "resources": ["clusterpolicies/finalizers"], "verbs": ["update"]},
    ]
}
NODES, STATUS = (
    {"apiGroups": [""], "resources": ["nodes"], "verbs": ["list", "patch"]},
    {"apiGroups": ["nvidia.com"], "resources": ["clusterpolicies/status"], "verbs": ["patch"]},
)


def test_what_is_needed() -> None:
    """What only OpenShift asks for is not held to be needed."""
    assert permissions.rights_of(ROLE) == {
        Right("", "nodes", "list"),
        Right("", "nodes", "patch"),
        Right("nvidia.com", "clusterpolicies/status", "patch"),
    }


@pytest.mark.parametrize(
    ("granted", "missing"),
    [
        pytest.param([NODES, STATUS], "", id="as-needed"),
        pytest.param([{"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]}], "", id="everything"),
        pytest.param([NODES, {**STATUS, "resources": ["*/status"]}], "", id="all-subresources"),
        pytest.param([STATUS], "list and patch nodes", id="a-resource"),
        pytest.param([STATUS, {**NODES, "verbs": ["list"]}], "patch nodes", id="a-verb"),
        pytest.param([NODES, {**STATUS, "apiGroups": [""]}], "patch clusterpolicies.nvidia.com/status", id="a-group"),
        pytest.param([NODES, {**STATUS, "resources": ["pods/status"]}], "patch clusterpolicies.nvidia.com/status", id="another"),
        pytest.param([STATUS, {**NODES, "resourceNames": ["gpu01"]}], "list and patch nodes", id="one-object-only"),
    ],
)  # fmt: skip
def test_missing(granted: list[dict], missing: str) -> None:
    """Names each verb and resource that is not granted."""
    found = permissions.find_missing(permissions.rights_of(ROLE), granted)

    text = permissions.describe(found, "gpu-operator")
    assert text == (
        f"ServiceAccount gpu-operator/gpu-sharing-operator may not {missing}; "
        "install the ClusterRole and the Role gpu-sharing-operator of the chart again"
        if missing
        else ""
    )
