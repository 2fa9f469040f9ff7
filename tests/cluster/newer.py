"""What a newer Kubernetes answers otherwise than the recorded 1.36, and how each such answer becomes the recorded one.

Nothing else of these answers may differ.
"""

from __future__ import annotations

import re
from typing import Final

from support.kubectl_suites import Answer

_VERSION: Final = re.compile(r"(?<=Server Version: )v1\.(\d+)\.\d+")
_SINCE: Final[dict[int, dict[str, tuple[tuple[str, str], ...]]]] = {
    37: {
        # Kinds that have become stable.
        "a-003": (
            (r"\n(clustertrustbundles|podcertificaterequests) certificates\.k8s\.io/v1 .*", ""),
            (r"\ndevicetaintrules resource\.k8s\.io/v1 .*", ""),
            (r"\nstorageversionmigrations storagemigration\.k8s\.io/v1 .*", ""),
        ),
        "a-004": ((r"\nstoragemigration\.k8s\.io/v1(?=\n)", ""),),
        # The table of definitions has two more columns.
        "a-018": ((r" SCOPE VERSIONS(?= CREATED AT)", ""), (r" Cluster v1\(storage\)(?= TIME)", "")),
        # A field behind a feature gate.
        "a-071": ((r"\n podPreemptionPolicy <NodePodPreemptionPolicy>\n( \S.*\n)+(?=\n)", ""),),
        # The scheduler tells of claims only where a pod has some.
        "c-068": ((r" (?=preemption: )", " no new claims to deallocate, "),),
    },
}
"""By the minor version that brought them: patterns in an answer, and what stands there in the recorded one."""


def as_recorded(answers: dict[str, Answer], recorded: dict[str, Answer]) -> dict[str, Answer]:
    """The answers of a real server in the words of the recorded one."""
    version = _VERSION.search(answers["a-001"].text)
    then = _VERSION.search(recorded["a-001"].text)
    assert version
    assert then
    changed = {**answers, "a-001": _changed(answers["a-001"], ((re.escape(version[0]), then[0]),))}
    for minor, changes in _SINCE.items():
        if int(version[1]) >= minor:
            changed |= {case: _changed(answers[case], patterns) for case, patterns in changes.items()}
    return changed


def _changed(answer: Answer, patterns: tuple[tuple[str, str], ...]) -> Answer:
    text = answer.text
    for pattern, replacement in patterns:
        text = re.sub(pattern, replacement, text)
    return Answer(answer.exit, text)
