"""Fields that change their owner."""

from __future__ import annotations

from typing import Any

from gpushare.kube.ownership import inherit


def entry(
    manager: str, fields: dict[str, Any], *, subresource: str = "", time: str = "2026-01-01T00:00:00Z"
) -> dict[str, Any]:
    made = {"manager": manager, "operation": "Update", "apiVersion": "apps/v1", "time": time, "fieldsV1": fields}
    return {**made, "subresource": subresource} if subresource else made


def test_inherit() -> None:
    """All fields of the object itself under one name; what a subresource has written keeps its writer."""
    status = entry("kube-controller-manager", {"f:status": {"f:desired": {}}}, subresource="status")
    manifest = {
        "apiVersion": "apps/v1",
        "metadata": {
            "managedFields": [
                entry("gpu-operator", {"f:spec": {"f:template": {"f:a": {}, ".": {}}}}),
                entry("kubectl-rollout", {"f:spec": {"f:template": {"f:b": {}}}}, time="2026-02-02T00:00:00Z"),
                status,
            ]
        },
    }

    assert inherit(manifest, "heir") == [
        {
            "manager": "heir",
            "operation": "Apply",
            "apiVersion": "apps/v1",
            "time": "2026-02-02T00:00:00Z",
            "fieldsType": "FieldsV1",
            "fieldsV1": {"f:spec": {"f:template": {"f:a": {}, ".": {}, "f:b": {}}}},
        },
        status,
    ]
