"""Writing only what differs."""

import copy

import hypothesis.strategies as st
import pytest
from hypothesis import given

from gpushare import names
from gpushare.domain import manifests
from gpushare.errors import ClusterRefused, ClusterUnavailable
from gpushare.kube import applying, comparing

json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 5) | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=8,
)


@given(json_values)
def test_holds_itself(value: object) -> None:
    """Whatever was just written compares as written."""
    assert comparing.holds(copy.deepcopy(value), value)


@pytest.mark.parametrize(
    ("live", "wanted", "expected"),
    [
        pytest.param({"a": 1, "b": 2}, {"a": 1}, True, id="others add fields"),
        pytest.param({"b": 2}, {"a": 1}, False, id="a field is missing"),
        pytest.param({}, {"a": None}, True, id="null asks for nothing"),
        pytest.param({"a": [{"n": 1, "default": 2}]}, {"a": [{"n": 1}]}, True, id="defaults inside a list"),
        pytest.param({"a": [1, 2]}, {"a": [1]}, False, id="a list that grew"),
        pytest.param({"a": [1]}, {"a": [1, 2]}, False, id="a list that shrank"),
        pytest.param({"a": "1"}, {"a": 1}, False, id="another type"),
        pytest.param({"a": 1}, {"a": True}, False, id="a number is no boolean"),
        pytest.param({"a": "x"}, {"a": {"b": 1}}, False, id="no mapping"),
    ],
)
def test_holds(live: dict, wanted: dict, expected: bool) -> None:
    """What we want of an object has to be in it; the rest is not our business."""
    assert expected is comparing.holds(live, wanted)


OURS = {names.LABEL_MANAGED_BY: names.CONTROLLER}


def config_map(name: str, **data: str) -> dict:
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": name, "namespace": "n", "uid": f"uid-{name}", "labels": OURS},
        "data": data,
    }


class Recorder:
    """A cluster that stores what is applied, and writes numbers as a quantity in short form."""

    def __init__(self) -> None:
        self.applied: list[str] = []
        self.deleted: list[tuple[str, str]] = []

    async def apply(self, manifest: dict, *, manager: str, force: bool) -> dict:
        assert (manager, force) == ("me", True)
        self.applied.append(manifest["metadata"]["name"])
        stored = copy.deepcopy(manifest)
        stored["data"] = {key: value.replace("0.5", "500m") for key, value in stored["data"].items()}
        stored["metadata"]["resourceVersion"] = str(len(self.applied))
        return stored

    async def delete(self, _kind: object, name: str, _namespace: str, *, uid: str) -> bool:
        self.deleted.append((name, uid))
        return name != "absent"


async def test_only_what_differs() -> None:
    """In the given order: what is missing and what is different, and nothing else."""
    cluster = Recorder()
    applier = applying.Applier(cluster, "me")
    live = {manifests.key_of(m): m for m in (config_map("same", a="1", b="2"), config_map("other", a="2"))}

    written = await applier.apply([config_map("new"), config_map("same", a="1"), config_map("other", a="1")], live)

    assert cluster.applied == ["new", "other"]
    assert [manifest["metadata"]["name"] for manifest in written] == ["new", "other"]


async def test_what_the_server_rewrites() -> None:
    """An object that never reads as it was written is written once, and again when somebody touches it."""
    cluster = Recorder()
    applier = applying.Applier(cluster, "me")
    wanted = config_map("cpu", request="0.5")
    (stored,) = await applier.apply([wanted], {})

    assert not await applier.apply([wanted], {manifests.key_of(stored): stored})

    touched = {**stored, "data": {"request": "700m"}}
    assert await applier.apply([wanted], {manifests.key_of(touched): touched})


async def test_prune() -> None:
    """Deleted by uid; what is gone already is not counted."""
    cluster = Recorder()
    doomed = {manifests.key_of(config_map(name)): f"uid-{name}" for name in ("old", "absent")}

    gone = await applying.Applier(cluster, "me").prune(doomed)

    assert cluster.deleted == [("old", "uid-old"), ("absent", "uid-absent")]
    assert [key.name for key in gone] == ["old"]


async def test_each() -> None:
    """One that fails is told, and the others are written nevertheless."""
    done = []

    async def write(number: int) -> None:
        if number == 3:
            raise ClusterRefused("no", code=403)
        done.append(number)

    failures = await applying.each(range(10), write, concurrency=4)

    assert sorted(done) == [0, 1, 2, 4, 5, 6, 7, 8, 9]
    assert [str(failure) for failure in failures] == ["no"]


async def test_each_gives_up() -> None:
    """A server that is away is not asked thousands of times."""
    tried = []

    async def write(number: int) -> None:
        tried.append(number)
        raise ClusterUnavailable("away")

    failures = await applying.each(range(1000), write, concurrency=4)

    assert len(failures) == len(tried) < 10
