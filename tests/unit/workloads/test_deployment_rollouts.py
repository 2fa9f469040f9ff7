"""How the ReplicaSets of a Deployment grow and shrink against each other."""

from __future__ import annotations

import copy

import hypothesis.strategies as st
import pytest
from hypothesis import given

from gpushare.sandbox.workloads.deployments import replica_sets, rolling
from support import workload_objects as objects

QUARTER = {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": "25%", "maxUnavailable": "25%"}}


def deployment(replicas=4, strategy=None, **spec):
    return objects.workload("Deployment", "web", spec={"replicas": replicas, "strategy": strategy or QUARTER, **spec})


def owned(of, image, replicas, available=None, *, desired=None, revision=0):
    """A ReplicaSet of `of` with an image; the Deployment's own image is `image`."""
    template = copy.deepcopy(of["spec"]["template"])
    template["spec"]["containers"][0]["image"] = image
    template["metadata"]["labels"]["pod-template-hash"] = "hash"
    made = objects.workload("ReplicaSet", f"web-{image}", spec={"replicas": replicas, "template": template})
    made["status"] = {"replicas": replicas, "availableReplicas": replicas if available is None else available}
    size = of["spec"]["replicas"] if desired is None else desired
    made["metadata"]["annotations"] = {
        "deployment.kubernetes.io/desired-replicas": str(size),
        "deployment.kubernetes.io/max-replicas": str(size + -(-size // 4)),
        replica_sets.ANNOTATION_REVISION: str(revision),
    }
    return made


def view(of, *sets, has_old_pods=False):
    return replica_sets.build_view(of, sets, has_old_pods=has_old_pods)


def sizes(of, *sets, **more):
    """The next sizes, by image."""
    scalings = rolling.build_scalings(view(of, *sets, **more))
    return {scaling.replica_set["metadata"]["name"].removeprefix("web-"): scaling.replicas for scaling in scalings}


FOUR = deployment()


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        pytest.param(("old", 4), ("image", 0, 0), {"image": 1}, id="one more than wanted"),
        pytest.param(("old", 4), ("image", 1, 0), {"old": 3}, id="one less than wanted"),
        pytest.param(("old", 3), ("image", 1, 0), {"image": 2}, id="the room is used"),
        pytest.param(("old", 3), ("image", 2, 0), {}, id="then it waits"),
        pytest.param(("old", 3), ("image", 2, 1), {"old": 2}, id="a pod that works lets an old one go"),
        pytest.param(("old", 4, 0), ("image", 1, 0), {"old": 3}, id="broken old ones go first"),
        pytest.param(("old", 1), ("image", 4, 4), {"old": 0}, id="the last one"),
        pytest.param(("old", 0), ("image", 4, 4), {}, id="done"),
        pytest.param(("old", 0), ("image", 5, 5), {"image": 4}, id="too many"),
    ],
)
def test_rolling(old, new, expected):
    """A rollout never has more or fewer working pods than allowed."""
    assert sizes(FOUR, owned(FOUR, *old), owned(FOUR, *new)) == expected


@pytest.mark.parametrize(
    ("strategy", "surge", "unavailable"),
    [
        pytest.param(QUARTER, 2, 1, id="surge is rounded up, unavailable down"),
        pytest.param({"rollingUpdate": {"maxSurge": 0, "maxUnavailable": "10%"}}, 0, 1, id="something must give"),
        pytest.param({"rollingUpdate": {"maxSurge": 3, "maxUnavailable": 9}}, 3, 5, id="no more than there are"),
        pytest.param({}, 2, 1, id="defaults"),
        pytest.param({"type": "Recreate"}, 0, 0, id="Recreate"),
    ],
)
def test_fenceposts(strategy, surge, unavailable):
    """How far a rollout may go over and under the size of five."""
    found = view(deployment(5, strategy))

    assert (found.surge, found.unavailable) == (surge, unavailable)


@pytest.mark.parametrize(
    ("of", "sets", "expected"),
    [
        pytest.param(deployment(8), [("image", 4, 4, 4)], {"image": 8}, id="the only one"),
        pytest.param(deployment(0), [("image", 4, 4, 4)], {"image": 0}, id="to nothing"),
        pytest.param(deployment(8), [("old", 3, 3, 4), ("image", 2, 0, 4)], {"old": 6, "image": 4}, id="in proportion"),
        pytest.param(deployment(4, paused=True), [("old", 3, 3), ("image", 2, 0)], {}, id="paused"),
        pytest.param(deployment(8, paused=True), [("old", 4, 4, 4)], {"old": 8}, id="scaled while paused"),
    ],
)
def test_scaling(of, sets, expected):
    """A change of size, also in the middle of a rollout, is shared out."""
    made = [owned(of, image, count, available, desired=(*rest, None)[0]) for image, count, available, *rest in sets]

    assert sizes(of, *made) == expected


RECREATE = deployment(strategy={"type": "Recreate"})


def test_recreate():
    """All old pods go before the first new one comes."""
    old, new = owned(RECREATE, "old", 4), owned(RECREATE, "image", 0)
    gone = owned(RECREATE, "old", 0)

    assert sizes(RECREATE, old) == {"old": 0}
    assert not rolling.may_start(view(RECREATE, old))
    assert not rolling.may_start(view(RECREATE, gone, has_old_pods=True))
    assert rolling.may_start(view(RECREATE, gone))
    assert rolling.first_replicas(view(RECREATE, gone)) == 4
    assert sizes(RECREATE, gone, new, has_old_pods=True) == {}
    assert sizes(RECREATE, gone, new) == {"image": 4}


def test_paused_does_not_start():
    """A new template of a paused Deployment waits."""
    assert not rolling.may_start(view(deployment(paused=True)))
    assert rolling.may_start(view(FOUR))


def test_first_replicas():
    """A new template starts with as many pods as there is room for."""
    assert rolling.first_replicas(view(FOUR)) == 4
    assert rolling.first_replicas(view(FOUR, owned(FOUR, "old", 4))) == 1


@given(
    replicas=st.integers(0, 20),
    old=st.integers(0, 20),
    new=st.integers(0, 20),
    ready=st.integers(0, 20),
    surge=st.integers(0, 5),
    unavailable=st.integers(0, 5),
)
def test_bounds(replicas, old, new, ready, surge, unavailable):
    """No step makes more pods than allowed, nor takes working ones below the least."""
    strategy = {"rollingUpdate": {"maxSurge": surge, "maxUnavailable": unavailable}}
    of = deployment(replicas, strategy)
    found = view(of, owned(of, "old", old), owned(of, "image", new, min(ready, new)))
    before = {"old": old, "image": new}
    after = before | {
        scaling.replica_set["metadata"]["name"].removeprefix("web-"): scaling.replicas
        for scaling in rolling.build_scalings(found)
    }

    assert all(size >= 0 for size in after.values())
    assert sum(after.values()) <= max(sum(before.values()), replicas + found.surge)
    if after["old"] < old:
        assert after["old"] + min(ready, new) >= replicas - found.unavailable


def test_build_new():
    """A new ReplicaSet has the template with its hash in labels and selector, and knows its size and number."""
    of = deployment()
    of["metadata"]["annotations"] = {"note": "kept", "kubectl.kubernetes.io/last-applied-configuration": "not kept"}
    made = replica_sets.build_new(view(of, owned(of, "old", 4, revision=3)), 1)
    template_hash = made["metadata"]["labels"]["pod-template-hash"]

    assert made["metadata"]["name"] == f"web-{template_hash}"
    assert made["spec"]["selector"] == {"matchLabels": {"app": "web", "pod-template-hash": template_hash}}
    assert made["spec"]["template"]["metadata"]["labels"]["pod-template-hash"] == template_hash
    assert made["metadata"]["annotations"] == {
        "note": "kept",
        "deployment.kubernetes.io/desired-replicas": "4",
        "deployment.kubernetes.io/max-replicas": "5",
        "deployment.kubernetes.io/revision": "4",
    }
    made["metadata"]["creationTimestamp"] = objects.TIME
    assert view(of, made).new == made


def test_undo():
    """A template that comes back gets the newest number."""
    back, last = owned(FOUR, "image", 0, revision=1), owned(FOUR, "old", 4, revision=2)
    renewed = replica_sets.build_renewed(view(FOUR, back, last))

    assert renewed is not None
    assert replica_sets.revision_of(renewed) == 3
    assert replica_sets.build_renewed(view(FOUR, renewed, last)) is None


def test_build_scaled():
    """A scaled ReplicaSet remembers what the Deployment wanted."""
    scaled = replica_sets.build_scaled(view(deployment(8)), owned(FOUR, "image", 4), 8)

    assert replica_sets.spec_replicas(scaled) == replica_sets.desired_of(scaled) == 8
    assert replica_sets.most_of(scaled) == 10
