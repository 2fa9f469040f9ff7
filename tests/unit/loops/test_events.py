"""Events, merged as the clients of Kubernetes merge them."""

from __future__ import annotations

from gpushare.sandbox.loops.events import CountedEvents, Create, Event, Repeat, SerialEvents
from support import workload_objects as objects

NOW = objects.NOW


def event(message: str = "Created pod: a", *, about=None, **fields) -> Event:
    about = about if about is not None else DAEMON_SET
    return Event(about=about, type="Normal", reason=fields.pop("reason", "SuccessfulCreate"), message=message, **fields)


DAEMON_SET = objects.workload("DaemonSet", "dp")


def test_first():
    """A controller's event has the older shape, with all that kubectl shows."""
    write = CountedEvents("daemonset-controller").build_write(event(), NOW)

    assert isinstance(write, Create)
    manifest = write.manifest
    assert manifest["metadata"].pop("name").startswith("dp.")
    assert manifest == {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"namespace": "default"},
        "involvedObject": {
            "apiVersion": "apps/v1",
            "kind": "DaemonSet",
            "name": "dp",
            "namespace": "default",
            "uid": DAEMON_SET["metadata"]["uid"],
            "resourceVersion": DAEMON_SET["metadata"]["resourceVersion"],
        },
        "type": "Normal",
        "reason": "SuccessfulCreate",
        "message": "Created pod: a",
        "source": {"component": "daemonset-controller"},
        "firstTimestamp": "2026-01-01T00:00:00Z",
        "lastTimestamp": "2026-01-01T00:00:00Z",
        "count": 1,
        "reportingComponent": "daemonset-controller",
        "reportingInstance": "",
    }


def test_again():
    """The same message counts the first event up."""
    events = CountedEvents("c")
    first = events.build_write(event(), NOW)
    second = events.build_write(event(), NOW + 5)

    assert isinstance(first, Create)
    assert isinstance(second, Repeat)
    assert second.name == first.manifest["metadata"]["name"]
    assert second.body == {"count": 2, "lastTimestamp": "2026-01-01T00:00:05Z", "message": "Created pod: a"}


def test_similar():
    """The tenth message of a kind stands for all that follow."""
    events = CountedEvents("c")
    writes = [events.build_write(event(f"Created pod: {number}"), NOW + number) for number in range(12)]

    assert all(isinstance(write, Create) for write in writes[:10])
    assert writes[8].manifest["message"] == "Created pod: 8"
    assert writes[9].manifest["message"] == "(combined from similar events): Created pod: 9"
    assert isinstance(writes[11], Repeat)
    assert writes[11].body["count"] == 3
    assert writes[11].body["message"] == "(combined from similar events): Created pod: 11"


def test_similar_is_forgotten():
    """After ten quiet minutes, messages stand for themselves again."""
    events = CountedEvents("c")
    for number in range(12):
        events.build_write(event(f"Created pod: {number}"), NOW)
    write = events.build_write(event("Created pod: new"), NOW + 601)

    assert isinstance(write, Create)
    assert write.manifest["message"] == "Created pod: new"


def test_too_many():
    """A controller that says too much about one object is silenced; about others it still speaks."""
    events = CountedEvents("c")
    writes = [events.build_write(event(), NOW) for _ in range(26)]
    other = objects.workload("DaemonSet", "other")

    assert writes[24] is not None
    assert writes[25] is None
    assert events.build_write(event(about=other), NOW) is not None
    assert events.build_write(event(), NOW + 301) is not None


def test_cluster_scoped():
    """An event about a node lies in the default namespace, and names none of the node."""
    write = CountedEvents("node-controller").build_write(event(about=objects.node("gpu01")), NOW)

    assert isinstance(write, Create)
    assert write.manifest["metadata"]["namespace"] == "default"
    assert "namespace" not in write.manifest["involvedObject"]


def test_serial():
    """The scheduler's event has the newer shape: an event time, no counters."""
    events = SerialEvents("default-scheduler", "default-scheduler-1")
    write = events.build_write(event(about=objects.pod("web"), reason="Scheduled", action="Binding"), NOW)

    assert isinstance(write, Create)
    manifest = write.manifest
    assert manifest["eventTime"] == "2026-01-01T00:00:00.000000Z"
    assert manifest["firstTimestamp"] is manifest["lastTimestamp"] is None
    assert manifest["action"] == "Binding"
    assert (manifest["reportingComponent"], manifest["reportingInstance"]) == (
        "default-scheduler",
        "default-scheduler-1",
    )
    assert "count" not in manifest


def test_serial_again():
    """The same word within minutes makes a series; later it is a new event."""
    events = SerialEvents("s", "s-1")
    first = events.build_write(event(), NOW)
    second = events.build_write(event(), NOW + 300)
    third = events.build_write(event(), NOW + 700)

    assert isinstance(first, Create)
    assert second == Repeat(
        "default",
        first.manifest["metadata"]["name"],
        {"series": {"count": 2, "lastObservedTime": "2026-01-01T00:05:00.000000Z"}},
    )
    assert isinstance(third, Create)
