"""Sets of fields, and objects seen as sets of fields."""

from __future__ import annotations

from typing import Any

import hypothesis.strategies as st
import pytest
from hypothesis import given

from gpushare.sandbox.apiserver.objects import schemas
from gpushare.sandbox.apiserver.patching import fieldsets, ownership

STEPS = st.sampled_from(["f:a", "f:b", 'k:{"name":"c"}'])
POD = schemas.definition(("", "v1", "Pod"))
DAEMON_SET = schemas.definition(("apps", "v1", "DaemonSet"))


def paths_of(fields: fieldsets.FieldSet, prefix: tuple[str, ...] = ()) -> set[tuple[str, ...]]:
    """A set of fields as a plain set of paths: the model that the algebra is held against."""
    found = set()
    for step, node in fields.items():
        if step != fieldsets.SELF:
            if fieldsets.has_itself(node):
                found.add((*prefix, step))
            found |= paths_of(node, (*prefix, step))
    return found


def tree_of(paths: set[tuple[str, ...]]) -> dict[str, Any]:
    tree: dict[str, Any] = {}
    for path in paths:
        node = tree
        for step in path:
            node = node.setdefault(step, {})
        node["."] = {}
    return prune(tree)


def prune(tree: dict[str, Any]) -> dict[str, Any]:
    """Leaves are written as empty nodes."""
    return {step: {} if set(node) == {"."} else prune(node) for step, node in tree.items()}


PATHS = st.sets(st.lists(STEPS, min_size=1, max_size=3).map(tuple), max_size=6)


@given(PATHS, PATHS)
def test_algebra(left: set[tuple[str, ...]], right: set[tuple[str, ...]]) -> None:
    """The trees behave like the sets of paths that they stand for."""
    one, other = tree_of(left), tree_of(right)

    assert paths_of(fieldsets.union(one, other)) == left | right
    assert paths_of(fieldsets.difference(one, other)) == left - right
    assert paths_of(fieldsets.intersection(one, other)) == left & right
    below = {path for path in left if any(path[: len(prefix)] == prefix for prefix in right)}
    assert paths_of(fieldsets.without(one, other)) == left - below


@given(PATHS)
def test_encoding(paths: set[tuple[str, ...]]) -> None:
    """A set is what it was after it has been written in order."""
    assert paths_of(fieldsets.ordered(tree_of(paths))) == paths


def test_spelled_paths() -> None:
    """Messages name fields as people write them."""
    fields = {"f:spec": {"f:containers": {'k:{"name":"c"}': {".": {}, "f:image": {}}}}, "f:set": {'v:"x"': {}}}

    assert list(fieldsets.paths(fields)) == [
        '.set[="x"]',
        '.spec.containers[name="c"]',
        '.spec.containers[name="c"].image',
    ]


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        pytest.param({"nodeName": "n"}, {"f:nodeName": {}}, id="leaf"),
        pytest.param({"nodeSelector": {"a": "b"}}, {"f:nodeSelector": {}}, id="atomic map"),
        pytest.param({"tolerations": [{"key": "k"}]}, {"f:tolerations": {}}, id="atomic list"),
        pytest.param({"securityContext": {}}, {"f:securityContext": {}}, id="empty struct"),
        pytest.param({"containers": []}, {}, id="empty list claims nothing"),
        pytest.param(
            {"containers": [{"name": "c", "ports": [{"containerPort": 80}]}]},
            {
                "f:containers": {
                    'k:{"name":"c"}': {
                        ".": {},
                        "f:name": {},
                        "f:ports": {'k:{"containerPort":80,"protocol":"TCP"}': {".": {}, "f:containerPort": {}}},
                    }
                }
            },
            id="items by key, with its default",
        ),
    ],
)
def test_claims_of_an_applied_object(spec: dict[str, Any], expected: dict[str, Any]) -> None:
    """An applier claims leaves, items and keys of maps, never the structs on the way."""
    claimed = ownership.fields_of({"spec": spec}, POD)

    assert claimed == ({"f:spec": expected} if expected else {})


def test_a_new_daemon_set() -> None:
    """What a create owns, to the letter of a real server: structs that are always there are nobody's."""
    template = {
        "metadata": {"labels": {"app": "dp"}},
        "spec": {"containers": [{"name": "c", "image": "i", "resources": {}}], "dnsPolicy": "ClusterFirst"},
    }
    new = {"metadata": {}, "spec": {"selector": {"matchLabels": {"app": "dp"}}, "template": template}}

    assert ownership.compare({"metadata": {}}, new, DAEMON_SET).added == {
        "f:spec": {
            "f:selector": {},
            "f:template": {
                "f:metadata": {"f:labels": {".": {}, "f:app": {}}},
                "f:spec": {
                    "f:containers": {'k:{"name":"c"}': {".": {}, "f:name": {}, "f:image": {}, "f:resources": {}}},
                    "f:dnsPolicy": {},
                },
            },
        }
    }


def test_compare_finds_each_difference() -> None:
    """Added, modified and removed fields are told apart, in lists too."""
    old = {"spec": {"nodeName": "a", "hostname": "h", "containers": [{"name": "c", "image": "1"}, {"name": "d"}]}}
    new = {"spec": {"nodeName": "b", "subdomain": "s", "containers": [{"name": "c", "image": "2"}]}}

    comparison = ownership.compare(old, new, POD)
    assert comparison.added == {"f:spec": {"f:subdomain": {}}}
    assert comparison.modified == {"f:spec": {"f:nodeName": {}, "f:containers": {'k:{"name":"c"}': {"f:image": {}}}}}
    assert comparison.removed == {
        "f:spec": {"f:hostname": {}, "f:containers": {'k:{"name":"d"}': {".": {}, "f:name": {}}}}
    }


@pytest.mark.parametrize(
    ("live", "config", "expected"),
    [
        pytest.param(["a", "b"], ["b", "c"], ["a", "b", "c"], id="what is only live keeps its place"),
        pytest.param(
            ["a", "b", "c"], ["c", "a"], ["b", "c", "a"], id="shared ones take the order of the configuration"
        ),
        pytest.param([], ["x"], ["x"], id="into an empty list"),
        pytest.param(["a", "x"], ["n", "a"], ["n", "a", "x"], id="new ones where the configuration has them"),
    ],
)
def test_merged_lists(live: list[str], config: list[str], expected: list[str]) -> None:
    """Items of both sides come out once, in a real server's order."""

    def pod(names: list[str]) -> dict[str, Any]:
        return {"spec": {"containers": [{"name": name} for name in names]}}

    merged = ownership.merge(pod(live), pod(config), POD)
    assert expected == [each["name"] for each in merged["spec"]["containers"]]
