"""The protocol of kube-scheduler, as bytes; and whatever else may come, also where the API server asks."""

from __future__ import annotations

import contextlib
import json
from typing import Any

import hypothesis.strategies as st
from hypothesis import given, settings

from gpushare.scheduler import wire
from gpushare.scheduler.wire import BadCall, Victims
from gpushare.serving import reviews

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                ["Pod", "NodeNames", "Nodes", "items", "metadata", "name", "request", "object", "uid", "Pods"]
            ),
            inner,
            max_size=4,
        )
    ),
    max_leaves=12,
)


@settings(max_examples=300, deadline=None)
@given(JSON)
def test_any_json(value: Any) -> None:
    """A call is read, or is refused in words; nothing else comes of it."""
    body = json.dumps(value).encode()
    for read in (wire.read_nodes_call, wire.read_bind_call, wire.read_preempt_call):
        with contextlib.suppress(BadCall):
            read(body)
    with contextlib.suppress(reviews.BadReview):
        reviews.read_review(body, "Pod")


def test_victims_in_both_forms() -> None:
    """Whole pods, or only their uids."""
    pod = {"metadata": {"name": "a"}}
    whole = {"Pod": pod, "NodeNameToVictims": {"n": {"Pods": [{"metadata": {"uid": "1"}}], "NumPDBViolations": 2}}}
    meta = {"pod": pod, "nodeNameToMetaVictims": {"n": {"pods": [{"uid": "1"}], "numPDBViolations": 2}}}

    for call in (whole, meta):
        assert wire.read_preempt_call(json.dumps(call).encode()).victims == {"n": Victims(uids=("1",), violations=2)}
