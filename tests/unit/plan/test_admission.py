"""ConfigMaps that are about to be stored: which of them are judged, and what is said."""

from __future__ import annotations

from typing import Any

import pytest

from gpushare import names
from gpushare.plan.admission import Verdict, judge
from support.snapshots import MAP, node, policy, sharing_policy, snapshot, time_slicing

BROKEN = time_slicing(4).replace("replicas", "replica")
SAID = 'any: sharing.timeSlicing.resources[0].replica (line 6): unknown key; did you mean "replicas"?'


def manifest(name: str = MAP, *, labels: dict[str, str] | None = None, **content: Any) -> dict[str, Any]:
    metadata = {"name": name, "namespace": "gpu-operator", **({"labels": labels} if labels else {})}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, **content}


@pytest.mark.parametrize(
    ("found", "judged"),
    [
        pytest.param(manifest(data={"any": BROKEN}), True, id="named by the policy"),
        pytest.param(manifest("other", data={"any": BROKEN}), False, id="named by nobody"),
        pytest.param(
            manifest("other", labels={names.LABEL_SHARING_CONFIG: "true"}, data={"any": BROKEN}), True, id="labelled"
        ),
        pytest.param(
            manifest("other", labels={names.LABEL_SHARING_CONFIG: "false"}, data={"any": BROKEN}), False, id="says no"
        ),
    ],
)
def test_who_is_judged(found: dict[str, Any], *, judged: bool) -> None:
    """What is not meant for sharing is let through, whatever it says."""
    problems = judge(found, snapshot(policies=(sharing_policy(),))).problems

    assert bool(problems) is judged


@pytest.mark.parametrize(
    "policies",
    [
        pytest.param((), id="no policy"),
        pytest.param((policy(),), id="no ConfigMap named"),
        pytest.param((policy("a-policy"), sharing_policy()), id="named by a policy that is ignored"),
        pytest.param((policy(devicePlugin=5),), id="a policy that cannot be read"),
    ],
)
def test_policies(policies: tuple[Any, ...]) -> None:
    """The policy that is followed says what is used; a broken one says nothing."""
    assert judge(manifest(data={"any": BROKEN}), snapshot(policies=policies)) == Verdict()


def test_problems() -> None:
    """Each key by itself, each problem with its path, its line and what to write instead."""
    found = manifest(
        data={"any": BROKEN, "empty": "# nothing\n", "fine": time_slicing(2)},
        binaryData={"photo": "AAAA"},
    )
    verdict = judge(found, snapshot(policies=(sharing_policy(),)))

    assert verdict.problems[0].startswith(SAID), verdict.problems
    assert [text.partition(":")[0] for text in verdict.problems] == ["any"] * (len(verdict.problems) - 2) + [
        "empty",
        "photo",
    ]


def test_missing_keys() -> None:
    """A key that is named and not there is warned of: it may come later, and nodes keep what they have."""
    nodes = (node("gpu01", config="large"), node("gpu02", config="any"), node("gpu03", config="large"))
    verdict = judge(
        manifest(data={"any": time_slicing(2)}), snapshot(*nodes, policies=(sharing_policy("small"),))
    )  # fmt: skip

    assert verdict.problems == ()
    assert verdict.warnings == (
        'the policy names "small" as default, which this ConfigMap does not have: nodes keep what they have',
        'gpu01, gpu03: the label names "large", which this ConfigMap does not have',
    )


def test_no_name_yet() -> None:
    """A name that the API server has yet to make up is named by no policy; the label still counts."""
    found = manifest(labels={names.LABEL_SHARING_CONFIG: "true"}, data={"any": BROKEN})
    del found["metadata"]["name"]

    assert judge(found, snapshot()).problems
