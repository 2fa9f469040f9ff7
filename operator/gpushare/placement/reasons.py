"""Why a pod does not fit: stable codes with numbers, and what each means. Shown in events, by `explain`, in metrics.

The codes of single GPUs and their order are HAMi's, so that what people have learnt, and their alerts, stay true.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Final


class Code(StrEnum):
    """One thing that is in the way."""

    UNKNOWN_NODE = "NodeUnknown"
    AGENT_NOT_READY = "AgentNotReady"
    NOT_APPLIED = "ConfigNotApplied"
    NO_FRACTIONS = "NodeServesNoFractions"
    DIALECT = "DialectMismatch"
    FEW_DEVICES = "NodeInsufficientDevice"
    COMPUTE_NOT_SERVED = "ComputeNotServed"
    COMPUTE_MIXED = "ComputeSharingConflict"
    UNHEALTHY = "CardNotHealth"
    CORDONED = "CardCordoned"
    TYPE = "CardTypeMismatch"
    UUID = "CardUuidMismatch"
    SLOTS = "CardTimeSlicingExhausted"
    MEMORY = "CardInsufficientMemory"
    CORES = "CardInsufficientCore"
    EXCLUSIVE = "ExclusiveDeviceAllocateConflict"
    CORES_EXHAUSTED = "CardComputeUnitsExhausted"
    QUOTA = "ResourceQuotaNotFit"
    NUMA = "NumaNotFit"
    FEW_FIT = "AllocatedCardsInsufficientRequest"


MOST_LINES: Final = 12
"""About as much as an Event takes."""
_NUMBERS: Final = re.compile(r"\d+/\d+ ")

TEXTS: Final[Mapping[Code, str]] = {
    Code.UNKNOWN_NODE: "nothing is known of the node's GPUs",
    Code.AGENT_NOT_READY: "the agent on the node is not ready",
    Code.NOT_APPLIED: "the node does not run the configuration that it was given: it refuses it, or still waits",
    Code.NO_FRACTIONS: "the node serves no fractions of GPUs",
    Code.DIALECT: "the node serves fractions in the other dialect",
    Code.COMPUTE_NOT_SERVED: "the node limits memory only, and the pod asks for a share of compute",
    Code.COMPUTE_MIXED: "pods with and without a share of compute do not go together on the node",
    Code.FEW_DEVICES: "the node has fewer GPUs than one container asks for",
    Code.UNHEALTHY: "the GPU is not healthy",
    Code.CORDONED: "the GPU is cordoned by an annotation of the node",
    Code.TYPE: "the GPU is of another model, or of another isolation, than the pod wants",
    Code.NUMA: "no NUMA node has enough GPUs that fit",
    Code.UUID: "the pod names other GPUs, or excludes this one",
    Code.SLOTS: "as many containers are on the GPU as it takes",
    Code.QUOTA: "the quota of the namespace is used up",
    Code.MEMORY: "the GPU has too little free memory",
    Code.CORES: "the GPU has too little free compute",
    Code.EXCLUSIVE: "the GPU is wanted alone, or somebody has it alone",
    Code.CORES_EXHAUSTED: "all compute of the GPU is reserved",
    Code.FEW_FIT: "some GPUs fit, but fewer than one container asks for",
}


@dataclass(frozen=True, slots=True)
class Reason:
    """A code, and for how many GPUs it holds."""

    code: Code
    count: int
    total: int

    def __str__(self) -> str:
        """Same form as HAMi's: `2/4 CardInsufficientMemory`. What concerns the whole node has no numbers."""
        return f"{self.count}/{self.total} {self.code.value}" if self.total else self.code.value


def whole_node(code: Code) -> Reason:
    """A reason that no GPU of the node is asked about."""
    return Reason(code, 0, 0)


def build_message(reasons: Iterable[Reason]) -> str:
    """One line for events. Equal for nodes with equal reasons, so that kube-scheduler counts them together."""
    return ", ".join(map(str, reasons))


def shorten(failed: dict[str, str]) -> dict[str, str]:
    """Reasons by node, in few different lines: kube-scheduler writes each of them into the status of the pod.

    Of many, the numbers are left out; if that is not enough, all but the first code.
    """
    lines = set(failed.values())
    if len(lines) <= MOST_LINES:
        return failed
    short = {line: _NUMBERS.sub("", line) for line in lines}
    if len(set(short.values())) > MOST_LINES:
        short = {line: text.partition(",")[0] for line, text in short.items()}
    return {node: short[line] for node, line in failed.items()}


def explain(reason: Reason) -> str:
    """The same in words, for people who ask about one pod."""
    text = TEXTS[reason.code]
    return f"{reason.count} of {reason.total} GPUs: {text}" if reason.total else text
