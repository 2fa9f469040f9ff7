"""Why a node runs what it runs, in words."""

from __future__ import annotations

import pytest

from gpushare.domain.gpunode import GPUNode
from gpushare.views.explanations import explain_node


@pytest.mark.parametrize(
    ("status", "word"),
    [
        pytest.param("True", "warning", id="in force all the same"),
        pytest.param("False", "problem", id="refused"),
    ],
)
def test_what_is_odd_has_its_word(status: str, word: str) -> None:
    """A problem refuses a configuration, a warning does not."""
    node = GPUNode.from_json(
        {
            "metadata": {"name": "gpu01"},
            "status": {
                "problems": [{"path": "gpushare.fractions", "message": "MIG is on"}],
                "conditions": [{"type": "ConfigApplied", "status": status, "reason": "Test"}],
            },
        }
    )

    assert (word, "gpushare.fractions: MIG is on") in explain_node(node, None, ()).facts


def test_why_no_configuration() -> None:
    """In the controller's words: a label may be there that counts for nothing."""
    said = "no configuration is named for this node: its GPUs are not shared; the label names nothing"
    assigned = {"type": "ConfigAssigned", "status": "True", "reason": "NotShared", "message": said}
    node = GPUNode.from_json(
        {
            "metadata": {"name": "gpu01"},
            "spec": {"config": {"reason": "none", "revision": "", "content": ""}},
            "status": {"conditions": [assigned]},
        }
    )

    assert ("configuration", f"none: {said}") in explain_node(node, None, ()).facts
