"""Manifests laid over a cluster."""

from __future__ import annotations

from typing import Any

import pytest

from gpushare.errors import ConfigurationError, UsageError
from gpushare.plan.overlay import lay_over, read_manifests

NODE: dict[str, Any] = {
    "apiVersion": "v1",
    "kind": "Node",
    "metadata": {"name": "n", "uid": "1", "labels": {"a": "1", "b": "2"}},
}
POLICY: dict[str, Any] = {
    "apiVersion": "nvidia.com/v1",
    "kind": "ClusterPolicy",
    "metadata": {"name": "p", "uid": "7", "creationTimestamp": "old"},
    "spec": {"a": 1},
    "status": {"state": "ready"},
}


def laid(given: str = "", labels: dict[str, dict[str, str | None]] | None = None) -> list[dict[str, Any]]:
    return list(lay_over([NODE, POLICY], read_manifests(given), labels or {}, namespace="ops", now="now"))


def test_policy() -> None:
    """The file's spec, and what only the cluster knows of the object."""
    _, policy = laid("{apiVersion: nvidia.com/v1, kind: ClusterPolicy, metadata: {name: p}, spec: {b: 2}}")

    assert policy == {**POLICY, "spec": {"b": 2}}


def test_new_policy() -> None:
    """Younger than all that there are."""
    *_, policy = laid("{apiVersion: nvidia.com/v1, kind: ClusterPolicy, metadata: {name: q}, spec: {}}")

    assert policy["metadata"] == {"name": "q", "uid": "preview-q", "creationTimestamp": "now"}


def test_config_maps() -> None:
    """Each in its namespace, or in the operator's; what decides nothing is left out."""
    config_map = "{apiVersion: v1, kind: ConfigMap, metadata: {name: m%s}}\n"
    items = "{apiVersion: v1, kind: List, items: [%s, {apiVersion: v1, kind: Pod, metadata: {name: x}}]}"
    *_, one, two = laid(f"{items % (config_map % ', namespace: other')}\n---\n# nothing\n---\n{config_map % ''}")

    assert [each["metadata"]["namespace"] for each in (one, two)] == ["other", "ops"]


def test_labels() -> None:
    """Set, changed and taken away."""
    node, _ = laid(labels={"n": {"a": None, "b": "3", "c": ""}})

    assert node["metadata"]["labels"] == {"b": "3", "c": ""}
    assert NODE["metadata"]["labels"] == {"a": "1", "b": "2"}


def test_label_of_no_node() -> None:
    """A slip in a node's name is no change without effect."""
    with pytest.raises(UsageError, match="there is no node m"):
        laid(labels={"m": {"a": "1"}})


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("sharing: {}", id="configuration"),
        pytest.param("[1]", id="list"),
        pytest.param("{apiVersion: v1, kind: ConfigMap, metadata: {}}", id="no name"),
    ],
)
def test_no_manifest(text: str) -> None:
    """What could not be applied either."""
    with pytest.raises(ConfigurationError, match=r"line 3: must have apiVersion, kind and metadata\.name"):
        laid(f"# a\n---\n{text}\n")
