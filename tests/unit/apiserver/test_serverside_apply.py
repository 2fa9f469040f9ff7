"""Server-side apply: who owns what, who may change it, what goes when nobody wants it any more."""

from __future__ import annotations

import json
from typing import Any

import hypothesis.strategies as st
import pytest
from hypothesis import given

from gpushare.domain.manifests import Manifest
from gpushare.sandbox.apiserver.objects import schemas
from gpushare.sandbox.apiserver.objects.jsonvalues import copied
from gpushare.sandbox.apiserver.patching import applying, managed_fields
from gpushare.sandbox.apiserver.patching.managed_fields import Author
from gpushare.sandbox.apiserver.statuses import ApiError

CONFIG_MAP = schemas.definition(("", "v1", "ConfigMap"))
POLICY = schemas.custom(
    {
        "type": "object",
        "properties": {
            "spec": {
                "type": "object",
                "properties": {
                    "mig": {"type": "object", "properties": {"strategy": {"type": "string", "default": "single"}}},
                    "driver": {"type": "object", "properties": {"version": {"type": "string"}}},
                },
            },
            "status": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
        },
    }
)


def config_map(labels: dict[str, str] | None = None, **data: str) -> Manifest:
    metadata: dict[str, Any] = {"name": "ssa", **({"labels": labels} if labels is not None else {})}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data}


def apply(live: Manifest | None, config: Manifest, manager: str, *, force: bool = False, now: str = "t") -> Manifest:
    return applying.apply(live, config, CONFIG_MAP, Author(manager, "", now), force=force)


def update(old: Manifest | None, manager: str, **changes: Any) -> Manifest:
    new: Manifest = {**copied(old or config_map()), **changes}
    applying.track_update(old, new, CONFIG_MAP, Author(manager, "", "t"))
    return new


def stored(obj: Manifest) -> Manifest:
    """As the server keeps it: empty maps are not there."""
    return {name: value for name, value in obj.items() if value != {}}


def owners(obj: Manifest) -> dict[str, Any]:
    return {entry["manager"]: entry["fieldsV1"] for entry in obj["metadata"].get("managedFields", [])}


def test_two_appliers() -> None:
    """The story of two managers of one ConfigMap, as a real server tells it."""
    obj = apply(None, config_map({"a": "1", "b": "1"}, x="1", w="1"), "one")
    obj = apply(obj, config_map(z="1"), "two")
    obj = apply(obj, config_map(x="1"), "two")
    assert obj["data"] == {"x": "1", "w": "1"}
    assert owners(obj) == {
        "one": {"f:data": {"f:w": {}, "f:x": {}}, "f:metadata": {"f:labels": {"f:a": {}, "f:b": {}}}},
        "two": {"f:data": {"f:x": {}}},
    }

    obj = apply(obj, config_map({"a": "1", "b": "1"}, w="1"), "one")
    assert obj["data"] == {"w": "1", "x": "1"}, "two still wants x"
    obj = apply(obj, config_map(), "two")
    assert obj["data"] == {"w": "1"}

    obj = apply(obj, config_map(w="9"), "two", force=True)
    assert obj["data"] == {"w": "9"}, "a map that was applied empty keeps what comes into it"
    assert owners(obj)["one"] == {"f:metadata": {"f:labels": {"f:a": {}, "f:b": {}}}}

    obj = apply(obj, config_map({"a": "1"}, w="9"), "one", force=True)
    assert obj["metadata"]["labels"] == {"a": "1"}


@pytest.mark.parametrize(
    ("first", "second", "expected"),
    [
        pytest.param(
            {"x": "1"}, {"x": "2"}, 'Apply failed with 1 conflict: conflict with "one": .data.x', id="one conflict"
        ),
        pytest.param(
            {"x": "1", "w": "1"},
            {"x": "2", "w": "2"},
            'Apply failed with 2 conflicts: conflicts with "one":\n- .data.w\n- .data.x',
            id="one line a field",
        ),
    ],
)
def test_conflict_between_appliers(first: dict[str, str], second: dict[str, str], expected: str) -> None:
    """Another applier's values are not overwritten."""
    obj = apply(None, config_map(**first), "one")
    with pytest.raises(ApiError) as caught:
        apply(obj, config_map(**second), "two")

    assert caught.value.code == 409
    assert expected == caught.value.message


def test_conflict_with_an_updater() -> None:
    """Texts say in which version a plain update was made."""
    obj = update(apply(None, config_map(x="1"), "one"), "kubectl-patch", data={"x": "patched"})
    with pytest.raises(ApiError) as caught:
        apply(obj, config_map(x="1"), "one")

    assert caught.value.message == 'Apply failed with 1 conflict: conflict with "kubectl-patch" using v1: .data.x'
    assert caught.value.details is not None
    assert caught.value.details["causes"] == [
        {"reason": "FieldManagerConflict", "message": 'conflict with "kubectl-patch" using v1', "field": ".data.x"}
    ]


def test_updates_take_what_they_change() -> None:
    """Whoever changes a value owns it, and the former owner does not any more."""
    obj = update(apply(None, config_map(x="1", w="1"), "one"), "kubectl-patch", data={"x": "2", "w": "1"})

    assert owners(obj) == {"one": {"f:data": {"f:w": {}}}, "kubectl-patch": {"f:data": {"f:x": {}}}}


def test_created_maps_are_owned_themselves() -> None:
    """A map that a writer brings in is its own, which an applier's never is."""
    obj = update(None, "kubectl-create", data={"a": "b"})

    assert owners(obj) == {"kubectl-create": {"f:data": {".": {}, "f:a": {}}}}


def test_emptied_struct_goes() -> None:
    """Where nothing is applied below a struct any more, the struct goes, so that no default fills it again."""

    def policy(**spec: Any) -> Manifest:
        return {"apiVersion": "nvidia.com/v1", "kind": "ClusterPolicy", "metadata": {"name": "p"}, "spec": spec}

    writer = Author("kubectl", "", "t")
    obj = applying.apply(None, policy(driver={}, mig={"strategy": "single"}), POLICY, writer)
    obj = applying.apply(obj, policy(driver={}), POLICY, writer)

    assert obj["spec"] == {"driver": {}}


def test_status_door() -> None:
    """What a door does not let through is not owned; who applied nothing else is not recorded."""
    ignored = applying.ignored_fields(subresource="status", has_status=True, custom=True)
    writer = Author("ctl", "status", "t", ignored)
    live: Manifest = {"apiVersion": "nvidia.com/v1", "kind": "ClusterPolicy", "metadata": {"name": "p"}, "spec": {}}
    applying.track_update(None, live, POLICY, Author("kubectl-create", "", "t"))
    config = {**live, "metadata": {"name": "p", "labels": {"l": "x"}}, "spec": {"mig": {}}}

    nothing = applying.apply(live, config, POLICY, writer)
    assert "ctl" not in owners(nothing)
    something = applying.apply(live, {**config, "status": {"state": "ready"}}, POLICY, writer)
    assert owners(something)["ctl"] == {"f:status": {"f:state": {}}}
    with pytest.raises(ApiError, match=r'conflict with "ctl" with subresource "status": \.status\.state'):
        applying.apply(
            something, {**config, "status": {"state": "other"}}, POLICY, Author("ctl2", "status", "t", ignored)
        )


def test_before_first_apply() -> None:
    """Who applies to an object that nobody is known to own finds all of it owned by its past."""
    obj = config_map(x="1")
    assert owners(update(obj, "kubectl-patch", data={"x": "2"})) == {}, "updates do not start the record again"

    with pytest.raises(ApiError, match=r'conflict with "before-first-apply" using v1: \.data\.x'):
        apply(obj, config_map(x="9"), "one")


def test_from_client_side_to_server_side() -> None:
    """What the annotation of `kubectl apply` says was applied is no conflict for kubectl, and the annotation is renewed."""
    applied = json.dumps(config_map(x="1"))
    metadata = {"name": "ssa", "annotations": {applying.LAST_APPLIED: applied}}
    obj = update(None, "kubectl-client-side-apply", metadata=metadata, data={"x": "1"})

    with pytest.raises(ApiError, match="1 conflict"):
        apply(obj, config_map(x="2"), "other")
    obj = apply(obj, config_map(x="2"), "kubectl")
    assert obj["data"] == {"x": "2"}
    annotation = obj["metadata"]["annotations"][applying.LAST_APPLIED]
    assert json.loads(annotation) == config_map(x="2")
    assert annotation.endswith("}\n")


def test_time_is_of_the_last_change() -> None:
    """Applying the same again keeps the time; co-owning what is there has none."""
    obj = apply(None, config_map(x="1"), "one", now="t1")
    assert obj == apply(obj, config_map(x="1"), "one", now="t2")

    entries = apply(obj, config_map(x="1"), "two", now="t3")["metadata"]["managedFields"]
    assert {entry["manager"]: entry.get("time") for entry in entries} == {"one": "t1", "two": None}


def test_order_of_entries() -> None:
    """Appliers come first, then updaters by time."""
    obj = apply(None, config_map(x="0"), "zz")
    for manager, now in (("b", "t1"), ("a", "t2")):
        old = obj
        obj = {**copied(old), "data": {**old["data"], manager: "v"}}
        applying.track_update(old, obj, CONFIG_MAP, Author(manager, "", now))

    assert [entry["manager"] for entry in obj["metadata"]["managedFields"]] == ["zz", "b", "a"]


WORDS = st.sampled_from(["a", "b", "c"])
DATA = st.dictionaries(WORDS, WORDS, max_size=3)
STEPS = st.lists(st.tuples(st.sampled_from(["one", "two"]), DATA, st.booleans()), min_size=1, max_size=6)


@given(STEPS)
def test_apply_again_changes_nothing(steps: list[tuple[str, dict[str, str], bool]]) -> None:
    """Whatever came before: what was applied is there, and applying it again keeps the object as it is."""
    obj: Manifest | None = None
    for manager, data, by_update in steps:
        if by_update and obj is not None:
            obj = update(obj, f"update-{manager}", data={**obj.get("data", {}), **data})
            continue
        config = stored(config_map(**data))
        obj = stored(apply(obj, config, manager, force=True, now="t1"))
        assert obj.get("data", {}).items() >= data.items()
        again = stored(apply(obj, config, manager, now="t2"))
        assert managed_fields.is_unchanged(again, obj)


@given(STEPS)
def test_nobody_loses_what_they_own(steps: list[tuple[str, dict[str, str], bool]]) -> None:
    """No key goes while an entry still names it."""
    obj: Manifest | None = None
    for manager, data, _ in steps:
        obj = apply(obj, config_map(**data), manager, force=True)
        owned = {key[2:] for fields in owners(obj).values() for key in fields.get("f:data", {}) if key != "."}
        assert owned == set(obj.get("data", {}))
