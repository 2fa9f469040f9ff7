"""What a ClusterPolicy says about itself: its state, the conditions of NVIDIA's operator, and ours besides. Called by `build`."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any, Final

from gpushare.domain.conditions import Condition, with_times
from gpushare.plan import wording
from gpushare.plan.assignments import Verdict
from gpushare.plan.rollouts import Summary, title_of
from gpushare.plan.snapshot import Policy

READY: Final = "Ready"
ERROR: Final = "Error"
CONFIG_VALID: Final = "ConfigValid"
ROLLED_OUT: Final = "RolledOut"
CONFLICT: Final = "Conflict"
UNMANAGED: Final = "UnmanagedComponents"
PERMITTED: Final = "Permitted"

STATE_READY: Final = "ready"
STATE_NOT_READY: Final = "notReady"
STATE_IGNORED: Final = "ignored"

RECONCILED: Final = "Reconciled"
NO_GPU_NODES: Final = "NoGPUNodes"
DISABLED: Final = "Disabled"
NFD_LABELS_MISSING: Final = "NFDLabelsMissing"
OPERAND_NOT_READY: Final = "OperandNotReady"
RECONCILE_FAILED: Final = "ReconcileFailed"
IGNORED: Final = "Ignored"
_SUCCESS: Final = {
    RECONCILED: "ClusterPolicy is ready as all resources have been successfully reconciled",
    NO_GPU_NODES: "No GPU node found, watching for new nodes to join the cluster.",
    NFD_LABELS_MISSING: "No NFD labels found",
}
"""Word for word those of NVIDIA's operator, which scripts look for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicyStatus:
    """What is to be written to the status of one policy."""

    name: str
    uid: str
    state: str
    namespace: str
    conditions: tuple[Condition, ...]

    def to_json(self) -> dict[str, Any]:
        """The whole `status`, for one merge patch: state and conditions never contradict each other."""
        return {
            "state": self.state,
            "namespace": self.namespace,
            "conditions": [condition.to_json() for condition in self.conditions],
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """The result of a pass for one policy, before it becomes conditions."""

    state: str
    reason: str
    message: str = ""
    others: tuple[Condition, ...] = ()
    """Conditions besides `Ready` and `Error`. What is stored and not among them stays as it is."""
    is_left: bool = False
    """Another operator writes state, `Ready` and `Error` of this policy; a second one would only contradict it."""


def succeeded(reason: str, others: Iterable[Condition] = ()) -> Outcome:
    """Everything is as it should be; the reason is one of three."""
    return Outcome(state=STATE_READY, reason=reason, message=_SUCCESS[reason], others=tuple(others))


def failed(problems: Iterable[str], others: Iterable[Condition] = ()) -> Outcome:
    """Something could not be done, and nothing was changed on its account."""
    message = wording.joined(problems)
    return Outcome(state=STATE_NOT_READY, reason=RECONCILE_FAILED, message=message, others=tuple(others))


def not_ready(states: Iterable[str], reasons: Iterable[str], others: Iterable[Condition] = ()) -> Outcome:
    """Everything was done, and something is not there yet."""
    head = f"ClusterPolicy is not ready; states not ready: [{' '.join(states)}]"
    message = wording.joined([head, *reasons])
    return Outcome(state=STATE_NOT_READY, reason=OPERAND_NOT_READY, message=message, others=tuple(others))


def ignored(active: Policy) -> Outcome:
    """Another policy is older."""
    message = (
        f'ClusterPolicy "{active.name}" is the active one, since it is older; this one takes over when that is deleted'
    )
    return Outcome(state=STATE_IGNORED, reason=IGNORED, message=message)


def conditions_of(outcome: Outcome) -> tuple[Condition, ...]:
    """All conditions of an outcome, without times and generations."""
    if outcome.is_left:
        return outcome.others
    if outcome.state == STATE_READY:
        ready = Condition(type=READY, status="True", reason=outcome.reason, message=outcome.message)
        error = Condition(type=ERROR, status="False", reason=READY)
    else:
        ready = Condition(type=READY, status="False", reason=ERROR)
        error = Condition(type=ERROR, status="True", reason=outcome.reason, message=outcome.message)
    return (ready, error, *outcome.others)


def build_status(policy: Policy, outcome: Outcome, *, namespace: str, now: str) -> PolicyStatus | None:
    """The status to write; None where it is stored already.

    Args:
        policy: with what is stored.
        outcome: of this pass.
        namespace: the operator's.
        now: RFC 3339 time for conditions that change.
    """
    state = outcome.state
    if outcome.is_left:
        state, namespace = policy.state or state, policy.namespace
    fresh = tuple(replace(c, observed_generation=policy.generation) for c in conditions_of(outcome))
    told = {condition.type for condition in fresh}
    kept = tuple(condition for condition in policy.conditions if condition.type not in told)
    conditions = (*with_times(fresh, policy.conditions, now), *kept)
    order = [c.type for c in policy.conditions]
    ordered = sorted(conditions, key=lambda c: order.index(c.type) if c.type in order else len(order))
    status = PolicyStatus(name=policy.name, uid=policy.uid, state=state, namespace=namespace, conditions=tuple(ordered))
    stored = (policy.state, policy.namespace, policy.conditions)
    return None if stored == (status.state, status.namespace, status.conditions) else status


def config_valid(verdict: Verdict, title: str) -> Condition:
    """Whether what the policy and the labels name can be used.

    Args:
        verdict: of the assignments.
        title: the ConfigMap for people; empty when the policy names none.
    """
    if verdict.refusals:
        reasons = {refusal.reason for refusal in verdict.refusals}
        return Condition(
            type=CONFIG_VALID,
            status="False",
            reason=reasons.pop() if len(reasons) == 1 else "SeveralProblems",
            message=wording.joined([refusal.text for refusal in verdict.refusals]),
        )
    if verdict.warnings:
        # Nothing of what is in use: a warning would be told anew whenever that changes.
        message = wording.joined(verdict.warnings)
        return Condition(type=CONFIG_VALID, status="True", reason="ValidWithWarnings", message=message)
    used = ", ".join(title_of(config) for config in verdict.used.values())
    if not title and not used:
        message = "devicePlugin.config of the policy names no ConfigMap: nothing is shared"
        return Condition(type=CONFIG_VALID, status="True", reason="NotShared", message=message)
    message = f"{title or 'labels of nodes'}: {used or 'no node uses a key of it'}"
    return Condition(type=CONFIG_VALID, status="True", reason="Valid", message=message)


def rolled_out(summary: Summary) -> Condition:
    """How many nodes run what they were given."""
    if summary.refused:
        status, reason = "False", "Refused"
    elif summary.held:
        status, reason = "False", "Held"
    elif summary.waiting:
        status, reason = "False", "Waiting"
    elif summary.kept:
        status, reason = "False", "SomeNodes" if summary.applied else "NoNode"
    else:
        status, reason = "True", "AllNodes" if summary.total else NO_GPU_NODES
    return Condition(type=ROLLED_OUT, status=status, reason=reason, message=summary.text)


def rollout_news(summary: Summary) -> Condition:
    """The same as `rolled_out`, with the message that Events have."""
    return replace(rolled_out(summary), message=summary.news)


def switched_off() -> tuple[Condition, Condition]:
    """`ConfigValid` and `RolledOut` of a policy that wants no device plugin, whatever configuration it names."""
    message = "devicePlugin.enabled of the policy is false: no node runs the device plugin"
    return (
        Condition(type=CONFIG_VALID, status="True", reason=DISABLED, message=message),
        Condition(type=ROLLED_OUT, status="True", reason=DISABLED, message=message),
    )


def conflict(texts: Iterable[str], *, reason: str = "OwnedByAnother") -> Condition:
    """Whether somebody else does what we do."""
    message = wording.joined(texts)
    if message:
        return Condition(type=CONFLICT, status="True", reason=reason, message=message)
    return Condition(type=CONFLICT, status="False", reason="None")


def permitted(missing: str) -> Condition:
    """Whether the controller has the rights of its chart.

    Args:
        missing: what it lacks, for people; empty when it lacks nothing.
    """
    if missing:
        return Condition(type=PERMITTED, status="False", reason="RightsMissing", message=wording.joined([missing]))
    return Condition(type=PERMITTED, status="True", reason="RightsComplete")


def unmanaged(components: Iterable[str], notes: Iterable[str]) -> Condition:
    """What of the policy has no effect here. For information only: it never makes the policy not ready."""
    components = tuple(components)
    sentences = [f"enabled, and left to another operator: {', '.join(components)}"] if components else []
    message = wording.joined([*sentences, *notes])
    if message:
        return Condition(type=UNMANAGED, status="True", reason="NotManagedHere", message=message)
    return Condition(type=UNMANAGED, status="False", reason="None")
