"""The agent's conditions of a GPUNode: what is in force and why, how the devices are, whether the kubelet knows them. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from gpushare import names
from gpushare.agent.deciding import Decision
from gpushare.agent.facts import Facts, find_overuse, find_waiting
from gpushare.agent.troubles import find_sick
from gpushare.domain import gpunode
from gpushare.domain.conditions import Condition

_MAX_MESSAGE: Final = 1024


def build_conditions(facts: Facts) -> tuple[Condition, ...]:
    """The agent's three conditions, and a fourth where MPS is used."""
    always = (_config_applied(facts), _devices_ready(facts), _registered(facts))
    return (*always, _mps_ready(facts)) if facts.waiting else always


def _config_applied(facts: Facts) -> Condition:
    decision = facts.decision
    if decision.refusal:
        kept = _name_of(decision)
        message = f"{_joined(map(str, decision.refusal))}; {f'kept: {kept}' if kept else 'the devices are unshared'}"
        return _condition(gpunode.CONFIG_APPLIED, facts, "ConfigRefused", message)
    if decision.in_force is None:
        message = "nothing is assigned; the devices are unshared"
        return _condition(gpunode.CONFIG_APPLIED, facts, "NoConfig", message)
    message = _joined((f"in force: {_name_of(decision)}", *map(str, (*decision.notes, *find_overuse(facts)))))
    return _condition(gpunode.CONFIG_APPLIED, facts, "Applied", message, good=True)


def _name_of(decision: Decision) -> str:
    """The configuration in force, for people; empty where there is none."""
    if decision.in_force is None:
        return ""
    if not decision.revision:
        return "defaults, nothing is shared"
    name = decision.in_force.name
    return f"{name} (revision {decision.revision})" if name else f"revision {decision.revision}"


def _devices_ready(facts: Facts) -> Condition:
    if facts.inventory is None or facts.failure:
        return _condition(gpunode.DEVICES_READY, facts, "DriverUnavailable", facts.failure or "not asked yet")
    if not facts.inventory.gpus and not facts.inventory.problems:
        message = (
            f"the driver {facts.inventory.driver_version} finds no GPU on this node; "
            f"if it has none, remove its label {names.LABEL_PRESENT}"
        )
        return _condition(gpunode.DEVICES_READY, facts, "NoGPUs", message)
    sick = find_sick(facts.inventory.gpus)
    unread = [str(problem) for problem in facts.inventory.problems if problem.path not in sick]
    if sick or unread:
        reason = "DeviceUnhealthy" if sick else "DeviceUnreadable"
        return _condition(gpunode.DEVICES_READY, facts, reason, _joined((*sick.values(), *unread)))
    count = len(facts.inventory.gpus)
    message = f"{count} GPU{'s' if count > 1 else ''}, driver {facts.inventory.driver_version}"
    return _condition(gpunode.DEVICES_READY, facts, "Ready", message, good=True)


def _registered(facts: Facts) -> Condition:
    missing = {name: standing for name, standing in sorted(facts.standings.items()) if not standing.registered}
    if missing:
        message = _joined(f"{name}: {standing.message}" for name, standing in missing.items())
        is_displaced = any(standing.is_displaced for standing in missing.values())
        reason = gpunode.ANOTHER_PLUGIN if is_displaced else "NotRegistered"
        return _condition(gpunode.REGISTERED, facts, reason, message)
    message = f"the kubelet knows {', '.join(sorted(facts.standings)) or 'nothing yet'}"
    return _condition(gpunode.REGISTERED, facts, "Registered", message, good=True)


def _mps_ready(facts: Facts) -> Condition:
    waiting = [problem.message for problem in find_waiting(facts)]
    if waiting:
        return _condition(gpunode.MPS_READY, facts, "WaitingForMps", _joined(waiting))
    message = f"MPS daemons run for {', '.join(sorted(facts.waiting))}"
    return _condition(gpunode.MPS_READY, facts, "Ready", message, good=True)


def _condition(type_: str, facts: Facts, reason: str, message: str, *, good: bool = False) -> Condition:
    return Condition(
        type=type_,
        status="True" if good else "False",
        reason=reason,
        message=message,
        observed_generation=facts.generation,
    )


def _joined(texts: Iterable[str]) -> str:
    text = "; ".join(texts)
    return text if len(text) <= _MAX_MESSAGE else text[: _MAX_MESSAGE - 3] + "..."
