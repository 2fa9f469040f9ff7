"""Whether NVIDIA's operator is at work."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from gpushare.controller.rivals import find_nvidia_operators
from gpushare.errors import ClusterRefused

NOW = datetime(2026, 11, 29, 12, 0, tzinfo=UTC)


class Leases:
    """A cluster in which a namespace has this Lease."""

    def __init__(self, found: dict[str, Any] | None) -> None:
        self._found = found

    async def get(self, _kind: object, name: str, namespace: str) -> dict[str, Any] | None:
        assert name == "53822513.nvidia.com"
        if namespace == "closed":
            raise ClusterRefused("no", code=403)
        return self._found if namespace == "gpu-operator" else None


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        pytest.param(
            {"holderIdentity": "a", "renewTime": "2026-11-29T11:59:50.123456Z"}, {"gpu-operator"}, id="at work"
        ),
        pytest.param({"holderIdentity": "a", "renewTime": "2026-11-29T11:00:00.000000Z"}, set(), id="gone"),
        pytest.param({"holderIdentity": "", "renewTime": "2026-11-29T11:59:50.123456Z"}, set(), id="given back"),
        pytest.param({"holderIdentity": "a"}, set(), id="never renewed"),
        pytest.param(None, set(), id="never there"),
    ],
)
async def test_at_work(spec: dict[str, Any] | None, expected: set[str]) -> None:
    """It is where somebody renews its Lease; where we may not look, nobody is seen."""
    found = await find_nvidia_operators(
        Leases({"spec": spec} if spec is not None else None), ["gpu-operator", "other", "closed"], lambda: NOW
    )  # type: ignore[arg-type]

    assert found == expected
