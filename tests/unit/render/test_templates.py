"""Templates to manifests."""

from __future__ import annotations

import hypothesis.strategies as st
import jinja2
import pytest
import yaml
from hypothesis import given, settings

from gpushare.render.templates import render, to_yaml

VALUES = {"namespace": "gpu-operator", "image": "registry.example/gpu-sharing-operator:1.0"}


def test_files_in_order() -> None:
    """Accounts and rights come before what runs with them, by the numbers of the files."""
    kinds = [manifest["kind"] for manifest in render("controller", VALUES)]

    rights = ["ServiceAccount", "ClusterRole", "Role", "ClusterRoleBinding", "RoleBinding"]
    assert kinds == [*rights, "ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding", "Deployment"]


def test_missing_value() -> None:
    """A value that is not there is an error that names it, never an empty text."""
    with pytest.raises(jinja2.UndefinedError, match="'image' is undefined"):
        render("controller", {"namespace": "gpu-operator"})


def test_unknown_component() -> None:
    """A component without templates is an error, never an empty list."""
    with pytest.raises(FileNotFoundError, match="no templates"):
        render("no-such-component", VALUES)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
)


@settings(max_examples=50)
@given(JSON)
def test_values_stay_values(value: object) -> None:
    """Whatever a user wrote, it cannot become structure."""
    assert yaml.safe_load(f"a: {to_yaml(value)}\nb: 1\n") == {"a": value, "b": 1}


def test_nothing_escapes() -> None:
    """A namespace that looks like YAML is still only a namespace."""
    text = 'x"\nkind: Secret'

    assert {
        manifest["metadata"].get("namespace", text) for manifest in render("controller", {**VALUES, "namespace": text})
    } == {text}
