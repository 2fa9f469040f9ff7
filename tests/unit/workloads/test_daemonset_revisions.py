"""The history of a DaemonSet."""

from __future__ import annotations

import copy

from gpushare.sandbox.workloads.daemonsets import placing, revisions
from support import workload_objects as objects


def stored(manifest, number):
    return {**copy.deepcopy(manifest), "revision": number}


def with_image(daemon_set, image):
    changed = copy.deepcopy(daemon_set)
    changed["spec"]["template"]["spec"]["containers"][0]["image"] = image
    return changed


FIRST = objects.workload("DaemonSet", "dp")
SECOND = with_image(FIRST, "other")


def created(daemon_set, known=()):
    history = revisions.build_history(daemon_set, known)
    assert history.create is not None
    return history.create


def test_first():
    """The first revision is named by the hash of the template and holds a patch that brings it back."""
    history = revisions.build_history(FIRST, [])
    created = history.create

    assert created is not None
    assert created["metadata"]["name"] == f"dp-{history.current_hash}"
    assert created["metadata"]["labels"] == {"app": "dp", placing.LABEL_HASH: history.current_hash}
    assert created["metadata"]["ownerReferences"] == [objects.reference(FIRST)]
    assert created["revision"] == 1
    assert created["data"]["spec"]["template"] == FIRST["spec"]["template"] | {"$patch": "replace"}


def test_unchanged():
    """A template that has its revision gets no other one."""
    one = created(FIRST)
    history = revisions.build_history(FIRST, [one])

    assert history.create is None
    assert history.renumber is None
    assert history.current_hash == one["metadata"]["labels"][placing.LABEL_HASH]


def test_changed():
    """A new template counts up."""
    two = created(SECOND, [created(FIRST)])

    assert two["revision"] == 2
    assert two["metadata"]["name"] != created(FIRST)["metadata"]["name"]


def test_undo():
    """A template that comes back gets the newest number instead of a second revision."""
    one, two = created(FIRST), stored(created(SECOND), 2)
    history = revisions.build_history(FIRST, [one, two])

    assert history.create is None
    assert history.renumber == one | {"revision": 3}
    assert one["revision"] == 1


def test_excess():
    """The oldest revisions beyond the limit go, but none that a pod still has."""
    daemon_set = objects.workload("DaemonSet", "dp", spec={"revisionHistoryLimit": 1})
    known = [stored(created(with_image(FIRST, f"image-{number}")), number) for number in (3, 1, 2, 4)]
    used = {known[0]["metadata"]["labels"][placing.LABEL_HASH]}

    excess = revisions.build_excess(daemon_set, known, used)
    assert [revision["revision"] for revision in excess] == [1, 2]
