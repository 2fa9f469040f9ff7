"""Behind which address a service is."""

from __future__ import annotations

from typing import Any

import pytest

from gpushare.sandbox.apiserver.objects import services

SERVICE = {"spec": {"selector": {"app": "x"}, "ports": [{"port": 443, "targetPort": "https"}, {"port": 80}]}}


def pod(name: str, *, ready: str = "True", ip: str = "10.0.0.1", app: str = "x", **metadata: Any) -> dict[str, Any]:
    ports = [{"containerPort": 1}, {"name": "https", "containerPort": 9443}]
    return {
        "metadata": {"name": name, "labels": {"app": app, "more": "labels"}, **metadata},
        "spec": {"containers": [{"name": "c"}, {"name": "d", "ports": ports}]},
        "status": {"podIP": ip, "conditions": [{"type": "Ready", "status": ready}]},
    }


@pytest.mark.parametrize(
    ("pods", "port", "expected"),
    [
        pytest.param([pod("a")], 443, "10.0.0.1:9443", id="a port by its name"),
        pytest.param([pod("a")], 80, "10.0.0.1:80", id="the same port"),
        pytest.param([pod("a")], 81, None, id="no such port"),
        pytest.param([pod("b", ip="10.0.0.2"), pod("a")], 80, "10.0.0.1:80", id="the first by name"),
        pytest.param([pod("a", ready="False"), pod("b", ip="10.0.0.2")], 80, "10.0.0.2:80", id="a ready one"),
        pytest.param([pod("a", deletionTimestamp="now")], 80, None, id="none that is going"),
        pytest.param([pod("a", app="y")], 80, None, id="none of others"),
        pytest.param([pod("a", ip="")], 80, None, id="none without an address"),
        pytest.param([], 80, None, id="nobody"),
    ],
)
def test_address(pods: list[dict[str, Any]], port: int, expected: str | None) -> None:
    """That of a ready pod."""
    assert services.address_of(SERVICE, port, pods) == expected


def test_without_selector() -> None:
    """A service that chooses no pods leads nowhere here."""
    assert services.address_of({"spec": {"ports": [{"port": 80}]}}, 80, [pod("a")]) is None
