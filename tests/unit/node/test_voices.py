"""How a kubelet speaks in Events."""

from __future__ import annotations

from gpushare.sandbox.loops.events import Create, Event, Repeat
from gpushare.sandbox.node import voices
from gpushare.sandbox.node.voices import KubeletEvents

POD = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p", "namespace": "ns", "uid": "u"}}


def event(container: str, *, init: bool = False) -> Event:
    about = voices.about_container(POD, container, init=init)
    return Event(about=about, type="Normal", reason="Started", message="Container started")


def test_source_and_container() -> None:
    """The node stands in the source, the container in the field path; what repeats is counted, container by container."""
    kubelet = KubeletEvents("gpu01")
    first, second, again = (kubelet.build_write(event(name), 1.0) for name in ("a", "b", "a"))

    assert isinstance(first, Create)
    assert isinstance(second, Create)
    assert isinstance(again, Repeat)
    assert first.manifest["source"] == {"component": "kubelet", "host": "gpu01"}
    assert first.manifest["reportingInstance"] == "gpu01"
    assert first.manifest["involvedObject"]["fieldPath"] == "spec.containers{a}"
    assert (again.name, again.body["count"]) == (first.manifest["metadata"]["name"], 2)


def test_init_containers() -> None:
    """They have a place of their own in the specification."""
    write = KubeletEvents("gpu01").build_write(event("i", init=True), 1.0)
    assert isinstance(write, Create)
    assert write.manifest["involvedObject"]["fieldPath"] == "spec.initContainers{i}"


def test_nodes() -> None:
    """A kubelet calls its Node by name, and speaks of it in `default`."""
    about = voices.about_node("gpu01")
    write = KubeletEvents("gpu01").build_write(
        Event(about=about, type="Normal", reason="Starting", message="Starting kubelet."), 1.0
    )
    assert isinstance(write, Create)
    assert write.manifest["involvedObject"]["uid"] == "gpu01"
    assert write.manifest["metadata"]["namespace"] == "default"
