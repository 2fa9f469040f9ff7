"""Which devices are sick, why, since when, and when they are well again. Does no I/O; the agent's device watch asks.

A report marks the GPU or the MIG instance that it names; every share of it is sick then, in every resource. What ends a
trouble depends on its cause, and nothing ends it at the first good sign: a device that goes up and down takes pods with it
each time.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Final

from gpushare.agent import health
from gpushare.domain.devices import GPU, Health, Inventory
from gpushare.domain.troubles import Cause, Trouble
from gpushare.nvml.port import Event, Recovery

QUIET_SECONDS = 15.0
"""So long a device must show no sign of a trouble; twice as long each time that it comes back soon."""
LONGEST_QUIET_SECONDS: Final = 600.0
PROBES: Final = 3
"""So often, at least, it must have been found well meanwhile."""
RELAPSE_SECONDS: Final = 600.0
"""A trouble that comes back within that time had not been over."""
_SILENT: Final = frozenset({Cause.LOST, Cause.UNREADABLE})

_Key = tuple[str, str, Cause]
"""GPU, MIG instance or nothing, cause."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Moment:
    """Now, by both of an agent's clocks."""

    text: str
    """RFC 3339, for people."""
    seconds: float
    """Of the event loop: nothing that is waited for depends on a clock that jumps."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """What the driver told when everything was read."""

    inventory: Inventory
    lost: frozenset[int] = frozenset()
    """Indices of unreadable GPUs that have fallen off the bus."""
    deaf: Mapping[str, str] = field(default_factory=dict)
    """GPUs whose events cannot be had, by UUID, and why not. One that never reports any is not among them."""
    recoveries: Mapping[str, Recovery] = field(default_factory=dict)
    """What the driver asks for, by UUID of a GPU; one is missing where the driver does not tell."""
    driver_load: str = ""
    """Changes when the driver is loaded anew, which resets all GPUs; empty: not known."""


@dataclass(slots=True)
class _Case:
    """A trouble, and how far it is from being over."""

    trouble: Trouble
    good_since: float | None = None
    probes: int = 0
    advice: str = ""
    """What the driver asks for, for people."""

    def worsen(self) -> None:
        self.good_since, self.probes = None, 0


class Troubles:
    """Everything that is wrong with the devices of a node."""

    def __init__(self, known: Iterable[Trouble] = (), gpus: Iterable[GPU] = ()) -> None:
        """What an agent before this one has remembered: troubles, and GPUs as it had last read them."""
        self._cases = {_key(trouble): _Case(trouble) for trouble in known}
        self._over: dict[_Key, tuple[int, float]] = {}
        """Troubles of the past: their relapses, and when they were over."""
        self._gpus = {gpu.uuid: gpu for gpu in gpus}
        """As last read; those that cannot be read now are among them."""
        self._driver_load = ""

    @property
    def known(self) -> tuple[Trouble, ...]:
        """What is to be remembered, in an order of its own."""
        return tuple(self._cases[key].trouble for key in sorted(self._cases))

    @property
    def gpus(self) -> tuple[GPU, ...]:
        """GPUs as last read, those too that cannot be read now."""
        return tuple(sorted(self._gpus.values(), key=lambda gpu: gpu.index))

    @property
    def places(self) -> tuple[int, ...]:
        """Indices of the GPUs of which a hardware trouble is known: the driver is asked what it wants done."""
        sick = {gpu for gpu, _, cause in self._cases if cause is Cause.HARDWARE}
        return tuple(sorted(self._gpus[gpu].index for gpu in sick if gpu in self._gpus))

    def concerns(self, event: Event) -> bool:
        """Whether a report is about anything that is known here."""
        return bool(self._targets(event))

    def report(self, event: Event, now: Moment) -> None:
        """Takes a GPU's report of an error."""
        for mig in self._targets(event):
            self._mark((event.uuid, mig, health.cause_of(event)), f"XID {event.xid}", now)

    def read(self, reading: Reading, now: Moment, *, trusts_silence: bool = False) -> Inventory:
        """Takes what was read: what is unreadable is sick, unless that is no trouble; what is well again is so from now on.

        Returns the inventory with the health of everything, and with GPUs in it that cannot be read now: one would vanish
        from the kubelet's list otherwise, and come back as if it were another one.
        """
        self._driver_load = reading.driver_load
        reasons = {problem.path: problem.message for problem in reading.inventory.problems}
        if not trusts_silence:
            self._mark_silent(reading, reasons, now)
        present = {gpu.uuid: gpu for gpu in reading.inventory.gpus}
        missing = {uuid: gpu for uuid, gpu in self._gpus.items() if f"gpus[{gpu.index}]" in reasons}
        self._gpus = missing | present
        self._heal(reading, now)
        inventory = reading.inventory
        if trusts_silence:
            inventory = replace(inventory, gpus=tuple((missing | present).values()))
        return self.apply(inventory)

    def _mark_silent(self, reading: Reading, reasons: Mapping[str, str], now: Moment) -> None:
        present = {gpu.uuid for gpu in reading.inventory.gpus}
        for gpu in list(self._gpus.values()):
            reason = reasons.get(f"gpus[{gpu.index}]")
            if reason is None or gpu.uuid in present:
                continue
            cause = Cause.LOST if gpu.index in reading.lost else Cause.UNREADABLE
            self._mark((gpu.uuid, "", cause), reason, now)
        for uuid, reason in reading.deaf.items():
            self._mark((uuid, "", Cause.UNREADABLE), reason, now)

    def fail(self, inventory: Inventory, reason: str, now: Moment) -> Inventory:
        """The driver as a whole has stopped answering: every GPU is sick."""
        for gpu in inventory.gpus:
            self._mark((gpu.uuid, "", Cause.UNREADABLE), reason, now)
        return self.apply(inventory)

    def apply(self, inventory: Inventory) -> Inventory:
        """The inventory with the health of everything."""
        gpus = {gpu.uuid: gpu for gpu in inventory.gpus}
        for uuid, _, cause in self._cases:
            if cause in _SILENT and uuid in self._gpus:
                gpus.setdefault(uuid, self._gpus[uuid])
        marked = sorted(map(self._with_health, gpus.values()), key=lambda gpu: gpu.index)
        return replace(inventory, gpus=tuple(marked))

    def _targets(self, event: Event) -> tuple[str, ...]:
        """MIG instances that a report is about; the empty name for the whole GPU."""
        gpu = self._gpus.get(event.uuid)
        if gpu is None:
            return ()
        if event.gpu_instance is None or not gpu.mig:
            return ("",)
        return tuple(
            mig.uuid
            for mig in gpu.mig
            if mig.gpu_instance == event.gpu_instance and event.compute_instance in {None, mig.compute_instance}
        )

    def _mark(self, key: _Key, reason: str, now: Moment) -> None:
        if key in self._cases:
            # The first report stays: it tells since when.
            self._cases[key].worsen()
            return
        relapses, over = self._over.pop(key, (0, 0.0))
        self._cases[key] = _Case(
            Trouble(
                gpu=key[0],
                mig=key[1],
                cause=key[2],
                reason=reason,
                since=now.text,
                driver_load=self._driver_load,
                relapses=relapses + 1 if over and now.seconds - over < RELAPSE_SECONDS else 0,
            )
        )

    def _heal(self, reading: Reading, now: Moment) -> None:
        present = {gpu.uuid: gpu for gpu in reading.inventory.gpus}
        for key, case in list(self._cases.items()):
            if key not in self._cases or not self._is_over(case, present.get(key[0]), reading, now):
                continue
            del self._cases[key]
            self._over[key] = (case.trouble.relapses, now.seconds)
            if case.trouble.cause is Cause.LOST and key[0] in present:
                # Nothing but a reset brings a GPU back to the bus.
                self._cases = {other: kept for other, kept in self._cases.items() if other[0] != key[0]}

    def _is_over(self, case: _Case, gpu: GPU | None, reading: Reading, now: Moment) -> bool:
        trouble = case.trouble
        if trouble.driver_load and reading.driver_load not in {"", trouble.driver_load}:
            return gpu is not None or trouble.gpu not in self._gpus
        if gpu is None:
            case.worsen()
            # One that is not even missed was taken out of the machine; what was wrong with it is told when it is back.
            return trouble.cause in _SILENT and trouble.gpu not in self._gpus
        if trouble.mig and all(mig.uuid != trouble.mig for mig in gpu.mig):
            return True
        if not _is_good(case, reading):
            case.worsen()
            return False
        case.probes += 1
        if case.good_since is None:
            case.good_since = now.seconds
        quiet = min(QUIET_SECONDS * 2**trouble.relapses, LONGEST_QUIET_SECONDS)
        return case.probes >= PROBES and now.seconds - case.good_since >= quiet

    def _with_health(self, gpu: GPU) -> GPU:
        mig = tuple(replace(mig, health=self._health(gpu.uuid, mig.uuid)) for mig in gpu.mig)
        return replace(gpu, health=self._health(gpu.uuid, ""), mig=mig)

    def _health(self, gpu: str, mig: str) -> Health:
        cases = [case for cause in Cause if (case := self._cases.get((gpu, mig, cause)))]
        if not cases:
            return Health()
        reasons = dict.fromkeys(text for case in cases for text in (case.trouble.reason, case.advice) if text)
        return Health(healthy=False, reason="; ".join(reasons), since=min(case.trouble.since for case in cases))


def find_sick(gpus: Iterable[GPU]) -> Mapping[str, str]:
    """Why devices may not be given out, by the path that discovery gives to what it cannot read: a lost GPU is told once."""
    found: dict[str, str] = {}
    for gpu in gpus:
        place = f"gpus[{gpu.index}]"
        if not gpu.health.healthy:
            found[place] = f"GPU {gpu.index}: {gpu.health.reason}"
        for mig in gpu.mig:
            if not mig.health.healthy:
                found[f"{place}.mig[{mig.index}]"] = f"MIG {gpu.index}:{mig.index}: {mig.health.reason}"
    return found


def _is_good(case: _Case, reading: Reading) -> bool:
    """Whether a GPU that could be read shows no sign of a trouble."""
    trouble = case.trouble
    if trouble.cause is Cause.HARDWARE:
        wanted = reading.recoveries.get(trouble.gpu)
        case.advice = wanted.advice if wanted is not None else ""
        return wanted is Recovery.NONE
    return trouble.gpu not in reading.deaf


def _key(trouble: Trouble) -> _Key:
    return trouble.gpu, trouble.mig, trouble.cause
