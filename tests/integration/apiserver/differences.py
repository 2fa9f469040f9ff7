"""Where the embedded server may answer otherwise than the recorded Kubernetes 1.36.3: which part, and why.

Everything else in these answers is compared all the same.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

from support.kubectl_suites import Answer

Reduce: TypeAlias = Callable[[str], str]
"""Takes away the part of an answer that may differ."""


def last_line(text: str) -> str:
    return text.rpartition("\n")[2]


def unique_lines(text: str) -> str:
    return "\n".join(sorted(set(text.splitlines())))


def without(pattern: str, replacement: str = "") -> Reduce:
    return lambda text: re.sub(pattern, replacement, text)


@dataclass(frozen=True, slots=True)
class Difference:
    """One reason for which some answers differ."""

    reason: str
    cases: tuple[str, ...]
    reductions: tuple[Reduce, ...]

    def reduce(self, answer: Answer) -> Answer:
        """What of an answer is compared."""
        text = answer.text
        for reduction in self.reductions:
            text = reduction(text)
        return Answer(answer.exit, text)


_NODES = without(r"gpu-node-\d", "NODE")

ACCEPTED = (
    Difference(
        "kubectl may be another patch version than the recorded one",
        ("a-001",),
        (without(r"Client Version: v\S+"), without(r"Kustomize Version: v\S+")),
    ),
    Difference(
        "the user of the recorded server had a client certificate, that of the embedded one has a token",
        ("a-074", "b-053"),
        (
            without(r"Username \w+"),
            without(r"\nExtra: .*"),
            without(r"\n client-(certificate|key)-data: DATA\+OMITTED"),
            without(r"\n token: REDACTED"),
        ),
    ),
    Difference(
        "exec is not served, and says so; the recorded server had no kubelet to ask",
        ("a-079",),
        (without("error: .*"),),
    ),
    Difference(
        "a real server's controllers give a new node some more labels, an annotation and a taint, a moment later",
        ("p-004", "p-008"),
        (
            without(r" beta\.kubernetes\.io/\w+: \w+\n"),
            without(r" annotations:\n node\.alpha\.kubernetes\.io/ttl: \S+\n"),
            without(r"\n taints:(\n (- )?(effect|key|timeAdded): \S+)+"),
        ),
    ),
    Difference(
        "how many progress lines of a rollout are seen is a matter of timing, on a real server too",
        ("p-015", "a-063", "a-066", "a-068", "b-006", "c-053", "c-076", "c-078", "c-086"),
        (last_line,),
    ),
    Difference(
        "when a timeout of one second ends a watch, kubectl sometimes logs that it was short, whatever the server",
        ("c-024", "c-026"),
        (without(r".*very short watch.*\n?"),),
    ),
    Difference("how far a Deployment is right after it was made is a matter of timing", ("a-059",), (without(r"\d"),)),
    Difference(
        "events of one second come in any order, how many there are is a matter of timing, which of two equal nodes a pod "
        "gets is chance",
        ("a-069", "a-070", "b-052", "c-064", "c-066"),
        (_NODES, without(r"\bj-\w{5}\b", "j-SUFFIX"), without(r"\(combined from similar events\): "), unique_lines),
    ),
    Difference("generated names sort as they fall", ("c-082",), (unique_lines,)),
    Difference(
        "which of two equal nodes a pod gets is chance, so is what a drain finds there and what stands in its description",
        ("a-080", "c-059", "c-060", "c-062"),
        (
            _NODES,
            without(r"Non-terminated Pods: \(\d in total\)"),
            without(r"\n gpu-operator time-slicing-verification-.*"),
            without(r"\n nvidia.com/gpu \d \d"),
            unique_lines,
        ),
    ),
)
"""The whole list."""

_BY_CASE = {case: difference for difference in ACCEPTED for case in difference.cases}


def compared(case: str, answer: Answer) -> Answer:
    """What of an answer must be equal."""
    return _BY_CASE[case].reduce(answer) if case in _BY_CASE else answer
