"""What of a pod counts for fractions, and which annotations are no decision for it."""

from __future__ import annotations

import pytest

from gpushare.agent.fractions.pods import read_pod
from gpushare.domain.fractions import Dialect
from support.bound_pods import asking, bound, decision, grant, units


def test_decided() -> None:
    """Containers in the order of the kubelet, those that end first before the others."""
    pod = read_pod(bound("a", {"main": (grant(0),), "first": (grant(1),)}, inits=("first",)), Dialect.HAMI)

    assert pod is not None
    assert pod.decision is not None
    assert list(pod.decision.containers) == ["first", "main"]
    assert (pod.title, pod.inits, pod.started, pod.ended, pod.fault) == ("default/a", {"first"}, False, False, "")


def test_sidecars_go_on() -> None:
    """What starts first and does not end is told by the kubelet like any other."""
    manifest = bound("a", {"main": (grant(),)})
    manifest["spec"]["initContainers"] = [asking("side", 1, restartPolicy="Always")]

    pod = read_pod(manifest, Dialect.HAMI)

    assert pod is not None
    assert (list(pod.asks), pod.inits) == (["side", "main"], frozenset())


def test_not_concerned() -> None:
    """A pod without a GPU, or with a resource of the other dialect."""
    manifest = bound("a", {})

    assert read_pod(manifest, Dialect.HAMI) is None
    assert read_pod(bound("b", {"main": (units(2),)}, dialect=Dialect.ALIYUN), Dialect.HAMI) is None


OTHER = decision("uid-b", {"main": (grant(),)}).to_annotation()
ENDLESS = decision("uid-a", {"main": (grant(memory_mib=3000),)}).to_annotation().replace("3000", "Infinity")
GREEDY = decision("uid-a", {"main": (grant(0), grant(1))}).to_annotation()
ALIYUN = decision("uid-a", {"main": (units(1),)}, dialect=Dialect.ALIYUN).to_annotation()


def test_as_the_api_server_writes_amounts() -> None:
    """It makes `3k` of 3000."""
    manifest = bound("a", {"main": (units(3000),)}, dialect=Dialect.ALIYUN)
    manifest["spec"]["containers"][0]["resources"]["limits"] = {"aliyun.com/gpu-mem": "3k"}

    pod = read_pod(manifest, Dialect.ALIYUN)

    assert pod is not None
    assert (pod.asks, pod.fault) == ({"main": 3000}, "")


@pytest.mark.parametrize(
    ("annotation", "fault"),
    [
        pytest.param("", "", id="none"),
        pytest.param("{", "not a decision of the scheduler: '{'", id="no JSON"),
        pytest.param('{"pod": "uid-a"}', "not a decision of the scheduler", id="half of one"),
        pytest.param("[" * 100_000, "not a decision of the scheduler", id="deeper than can be read"),
        pytest.param(ENDLESS, "not a decision of the scheduler", id="endless memory"),
        pytest.param(OTHER, "its annotation gpushare.dev/decision is that of another pod", id="copied"),
        pytest.param(GREEDY, "does not fit what its containers ask for", id="of another size"),
        pytest.param(ALIYUN, "in the words of aliyun, and this node has those of hami", id="of the other dialect"),
    ],
)
def test_forged(annotation: str, fault: str) -> None:
    """None of these gives anybody a GPU."""
    pod = read_pod(bound("a", {"main": (grant(),)}, annotation=annotation), Dialect.HAMI)

    assert pod is not None
    assert pod.decision is None
    assert fault in pod.fault


@pytest.mark.parametrize(
    ("status", "expected"),
    [
        pytest.param({}, (False, False), id="just bound"),
        pytest.param({"phase": "Pending", "startTime": "2026-11-29T12:00:00Z"}, (True, False), id="let in"),
        pytest.param({"phase": "Failed", "startTime": "2026-11-29T12:00:00Z"}, (True, True), id="refused"),
        pytest.param({"phase": "Succeeded"}, (False, True), id="done"),
    ],
)
def test_states(status: dict[str, str], expected: tuple[bool, bool]) -> None:
    """As far as they tell whether anything is still to be answered."""
    pod = read_pod(bound("a", {"main": (grant(),)}, status=status or {"phase": "Pending"}), Dialect.HAMI)

    assert pod is not None
    assert (pod.started, pod.ended) == expected
