"""Merge, JSON and strategic merge patches."""

from __future__ import annotations

from typing import Any

import hypothesis.strategies as st
import pytest
from hypothesis import given

from gpushare.sandbox.apiserver.objects import schemas
from gpushare.sandbox.apiserver.objects.jsonvalues import copied
from gpushare.sandbox.apiserver.patching import json_patches, merging
from gpushare.sandbox.apiserver.statuses import ApiError

DAEMON_SET = schemas.definition(("apps", "v1", "DaemonSet"))
NODE = schemas.definition(("", "v1", "Node"))
JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | st.text("ab", max_size=2),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text("abc", min_size=1, max_size=2), inner, max_size=3)
    ),
    max_leaves=12,
)
OBJECTS = st.dictionaries(st.text("abc", min_size=1, max_size=2), JSON, max_size=4)


@pytest.mark.parametrize(
    ("patch", "expected"),
    [
        pytest.param({"a": {"b": None}}, {"a": {"c": 2}, "l": [1]}, id="null removes"),
        pytest.param({"a": {"d": 3}}, {"a": {"b": 1, "c": 2, "d": 3}, "l": [1]}, id="objects merge"),
        pytest.param({"l": [2, 3]}, {"a": {"b": 1, "c": 2}, "l": [2, 3]}, id="lists are replaced"),
        pytest.param({"a": None}, {"l": [1]}, id="whole objects go"),
        pytest.param({"n": {"x": None}}, {"a": {"b": 1, "c": 2}, "l": [1], "n": {}}, id="nulls in new objects go too"),
    ],
)
def test_merge(patch: Any, expected: Any) -> None:
    """RFC 7386."""
    assert expected == merging.merge_patch({"a": {"b": 1, "c": 2}, "l": [1]}, patch)


@given(OBJECTS, OBJECTS)
def test_merge_twice_is_once(old: dict[str, Any], patch: dict[str, Any]) -> None:
    """A merge patch that is sent again changes nothing more, and never its arguments."""
    before = copied(old), copied(patch)
    once = merging.merge_patch(old, patch)

    assert once == merging.merge_patch(once, patch)
    assert before == (old, patch)


@given(OBJECTS, OBJECTS)
def test_merge_keeps_what_it_does_not_name(old: dict[str, Any], patch: dict[str, Any]) -> None:
    """Keys that a patch does not name stay as they are."""
    merged = merging.merge_patch(old, patch)

    assert {key: old[key] for key in old.keys() - patch.keys()} == {
        key: merged[key] for key in old.keys() - patch.keys()
    }


@pytest.mark.parametrize(
    ("operations", "expected"),
    [
        pytest.param([{"op": "add", "path": "/a/b", "value": 2}], {"a": {"b": 2}, "l": [1, 2]}, id="add replaces"),
        pytest.param(
            [{"op": "replace", "path": "/n", "value": 2}], {"a": {"b": 1}, "l": [1, 2], "n": 2}, id="replace adds"
        ),
        pytest.param([{"op": "add", "path": "/l/-", "value": 3}], {"a": {"b": 1}, "l": [1, 2, 3]}, id="append"),
        pytest.param([{"op": "add", "path": "/l/0", "value": 0}], {"a": {"b": 1}, "l": [0, 1, 2]}, id="insert"),
        pytest.param([{"op": "remove", "path": "/l/0"}], {"a": {"b": 1}, "l": [2]}, id="remove from a list"),
        pytest.param([{"op": "move", "from": "/a/b", "path": "/c"}], {"a": {}, "l": [1, 2], "c": 1}, id="move"),
        pytest.param(
            [{"op": "copy", "from": "/l", "path": "/c"}], {"a": {"b": 1}, "l": [1, 2], "c": [1, 2]}, id="copy"
        ),
        pytest.param([{"op": "test", "path": "/a/b", "value": 1}], {"a": {"b": 1}, "l": [1, 2]}, id="test holds"),
        pytest.param(
            [{"op": "test", "path": "/no", "value": None}], {"a": {"b": 1}, "l": [1, 2]}, id="nothing is null"
        ),
        pytest.param(
            [{"op": "add", "path": "/a/x~1y~0z", "value": 1}], {"a": {"b": 1, "x/y~z": 1}, "l": [1, 2]}, id="escapes"
        ),
        pytest.param([], {"a": {"b": 1}, "l": [1, 2]}, id="nothing to do"),
    ],
)
def test_json_patch(operations: Any, expected: Any) -> None:
    """RFC 6902, with the leniency of a real server."""
    old = {"a": {"b": 1}, "l": [1, 2]}

    assert expected == json_patches.apply(old, operations)
    assert old == {"a": {"b": 1}, "l": [1, 2]}


@pytest.mark.parametrize(
    "operation",
    [
        pytest.param({"op": "remove", "path": "/no"}, id="remove of nothing"),
        pytest.param({"op": "add", "path": "/no/x", "value": 1}, id="below nothing"),
        pytest.param({"op": "replace", "path": "/no/x", "value": 1}, id="replace below nothing"),
        pytest.param({"op": "test", "path": "/a", "value": 2}, id="test fails"),
        pytest.param({"op": "test", "path": "/a", "value": True}, id="one is not true"),
        pytest.param({"op": "add", "path": "/l/7", "value": 1}, id="past the end"),
        pytest.param({"op": "add", "path": "/l/x", "value": 1}, id="no position"),
        pytest.param({"op": "add", "path": "a", "value": 1}, id="no path"),
        pytest.param({"op": "add", "path": "/a"}, id="no value"),
        pytest.param({"op": "move", "from": "/no", "path": "/a"}, id="move of nothing"),
        pytest.param({"op": "bogus", "path": "/a"}, id="unknown operation"),
        pytest.param("x", id="no operation"),
    ],
)
def test_json_patch_fails(operation: Any) -> None:
    """Whatever cannot be done is a 422 that does not say what."""
    with pytest.raises(ApiError) as caught:
        json_patches.apply({"a": 1, "l": []}, [operation])

    assert caught.value.code == 422
    assert caught.value.message == "the server rejected our request due to an error in our request"


def test_json_patch_is_a_list() -> None:
    """Anything else is a mistake of another kind."""
    with pytest.raises(ApiError, match="cannot unmarshal object into Go value of type") as caught:
        json_patches.apply({}, {"op": "add"})
    assert caught.value.code == 400


def daemon_set(*containers: dict[str, Any]) -> dict[str, Any]:
    return {"spec": {"template": {"spec": {"containers": list(containers)}}}}


def names(obj: dict[str, Any]) -> list[str]:
    return [each["name"] for each in obj["spec"]["template"]["spec"]["containers"]]


@pytest.mark.parametrize(
    ("pod_spec", "expected"),
    [
        pytest.param({"containers": [{"name": "c2"}]}, ["c2", "a", "b"], id="new ones come first"),
        pytest.param({"containers": [{"name": "b", "image": "x"}]}, ["a", "b"], id="known ones keep their place"),
        pytest.param({"containers": [{"$patch": "delete", "name": "a"}]}, ["b"], id="delete"),
        pytest.param({"containers": [{"$patch": "replace"}, {"name": "z"}]}, ["z"], id="replace"),
        pytest.param({"$setElementOrder/containers": [{"name": "b"}, {"name": "a"}]}, ["b", "a"], id="order alone"),
        pytest.param(
            {
                "$setElementOrder/containers": [{"name": "a"}, {"name": "n"}, {"name": "b"}],
                "containers": [{"name": "n"}],
            },
            ["a", "n", "b"],
            id="order of a manifest",
        ),
    ],
)
def test_strategic_lists(pod_spec: dict[str, Any], expected: list[str]) -> None:
    """Lists of named things merge by name; order is a real server's."""
    old = daemon_set({"name": "a", "image": "a:1"}, {"name": "b", "image": "b:1"})
    patched = merging.strategic_merge(old, {"spec": {"template": {"spec": pod_spec}}}, DAEMON_SET)

    assert expected == names(patched)
    assert names(old) == ["a", "b"]


def test_strategic_merges_items() -> None:
    """An item that is named keeps what the patch does not say."""
    old = daemon_set({"name": "a", "image": "a:1", "env": [{"name": "X", "value": "1"}]})
    patch = daemon_set({"name": "a", "env": [{"name": "Y", "value": "2"}, {"name": "X", "$patch": "delete"}]})

    container = merging.strategic_merge(old, patch, DAEMON_SET)["spec"]["template"]["spec"]["containers"][0]
    assert container == {"name": "a", "image": "a:1", "env": [{"name": "Y", "value": "2"}]}


def test_strategic_conditions() -> None:
    """A condition of a node is found by its type."""
    old = {
        "status": {"conditions": [{"type": "MemoryPressure", "status": "False"}, {"type": "Ready", "status": "True"}]}
    }
    patch = {"status": {"conditions": [{"type": "Gpu", "status": "True"}]}}

    patched = merging.strategic_merge(old, patch, NODE)
    assert [each["type"] for each in patched["status"]["conditions"]] == ["Gpu", "MemoryPressure", "Ready"]


def test_strategic_plain_lists() -> None:
    """Lists of texts that merge are sets; those that do not are replaced; some lose single items."""
    old = {"metadata": {"finalizers": ["a", "b"]}, "spec": {"taints": [{"key": "a"}]}}
    patch = {
        "metadata": {"$deleteFromPrimitiveList/finalizers": ["a"], "finalizers": ["c"]},
        "spec": {"taints": [{"key": "b"}]},
    }

    patched = merging.strategic_merge(old, patch, NODE)
    assert sorted(patched["metadata"]["finalizers"]) == ["b", "c"]
    assert patched["spec"]["taints"] == [{"key": "b"}]


def test_strategic_retains_keys() -> None:
    """`$retainKeys` clears what is not named, as a changed strategy needs it."""
    schema = schemas.definition(("apps", "v1", "Deployment"))
    old = {"spec": {"strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1}}}}
    patch = {"spec": {"strategy": {"$retainKeys": ["type"], "type": "Recreate"}}}

    assert merging.strategic_merge(old, patch, schema) == {"spec": {"strategy": {"type": "Recreate"}}}


def test_strategic_needs_the_key() -> None:
    """An item without the key that names it cannot be merged."""
    with pytest.raises(ApiError, match=r"map: map\[image:x\] does not contain declared merge key: name"):
        merging.strategic_merge(daemon_set({"name": "a"}), daemon_set({"image": "x"}), DAEMON_SET)


def test_strategic_unknown_directive() -> None:
    """A directive that nobody knows is refused rather than stored."""
    with pytest.raises(ApiError, match="Unknown patch type found: bogus"):
        merging.strategic_merge({}, {"spec": {"$patch": "bogus"}}, DAEMON_SET)
