"""Which devices are sick, and what makes them well again."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import pytest

from gpushare.agent import troubles
from gpushare.agent.troubles import Moment, Reading, Troubles
from gpushare.domain.devices import Health, Inventory
from gpushare.domain.troubles import Cause
from gpushare.errors import Problem
from gpushare.nvml.port import Event, Recovery
from support.inventories import gpu, node, split_gpu, t4s

STEP = 5.0
"""Between two readings while something is wrong."""
GPU0, GPU1 = gpu(0).uuid, gpu(1).uuid


class Patient:
    """A node under observation, in a time of its own."""

    def __init__(self, inventory: Inventory, troubles: Troubles | None = None) -> None:
        self.troubles = troubles or Troubles()
        self.whole = inventory
        self.now = inventory
        self.seconds = 0.0
        if troubles is None:
            self.read()

    def next(self, inventory: Inventory | None = None) -> Patient:
        """The same node for the next agent, which has read nothing yet."""
        return Patient(inventory or self.whole, Troubles(self.troubles.known, self.troubles.gpus))

    def read(self, *, lost: Iterable[int] = (), unreadable: Iterable[int] = (), **fields: object) -> Inventory:
        """Everything is read, some seconds later."""
        self.seconds += STEP
        gone = {*lost, *unreadable}
        present = tuple(one for one in self.whole.gpus if one.index not in gone)
        problems = tuple(Problem(path=f"gpus[{index}]", message=f"GPU {index} is out") for index in sorted(gone))
        inventory = replace(self.whole, gpus=present, problems=problems)
        reading = Reading(inventory=inventory, lost=frozenset(lost), **fields)  # type: ignore[arg-type]
        self.now = self.troubles.read(reading, self.moment)
        return self.now

    def report(self, event: Event) -> None:
        self.troubles.report(event, self.moment)
        self.now = self.troubles.apply(self.now)

    @property
    def moment(self) -> Moment:
        return Moment(text=f"{self.seconds:04.0f}", seconds=self.seconds)

    @property
    def sick(self) -> list[str]:
        """Sick GPUs and MIG instances, as `0` and `0:1`."""
        found = [str(one.index) for one in self.now.gpus if not one.health.healthy]
        return found + [f"{g.index}:{m.index}" for g in self.now.gpus for m in g.mig if not m.health.healthy]

    def readings_until_well(self, most: int = 200, **fields: object) -> int:
        """How many readings it takes until nothing is sick; -1: it does not come to that."""
        return next((count for count in range(1, most) if self.read(**fields) and not self.sick), -1)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("event", "expected"),
    [
        pytest.param(Event(uuid=GPU0, xid=79), ["0"], id="whole GPU"),
        pytest.param(Event(uuid=GPU0, xid=79, gpu_instance=8), ["0:1"], id="GPU instance"),
        pytest.param(Event(uuid=GPU0, xid=79, gpu_instance=8, compute_instance=0), ["0:1"], id="compute instance"),
        pytest.param(Event(uuid=GPU0, xid=79, gpu_instance=8, compute_instance=3), [], id="another compute instance"),
        pytest.param(Event(uuid=GPU0, xid=79, gpu_instance=99), [], id="an instance that is not there"),
        pytest.param(Event(uuid=GPU1, xid=79, gpu_instance=8), ["1"], id="instance of a GPU without any"),
        pytest.param(Event(uuid="GPU-elsewhere", xid=79), [], id="unknown GPU"),
    ],
)
def test_reports(event: Event, expected: list[str]) -> None:
    """What the report is about is sick, and nothing else."""
    patient = Patient(node(split_gpu(0, "1g.5gb", "1g.5gb"), gpu(1)))

    patient.report(event)

    assert expected == patient.sick
    assert patient.troubles.concerns(event) is bool(expected)


def test_first_report_stays() -> None:
    """It tells since when."""
    patient = Patient(t4s(1))
    for xid in (79, 48):
        patient.report(Event(uuid=GPU0, xid=xid))
        patient.read()

    assert patient.now.gpus[0].health == Health(healthy=False, reason="XID 79", since="0005")


def test_two_troubles_at_once() -> None:
    """Both are told, that of the hardware first."""
    patient = Patient(t4s(2))
    patient.report(Event(uuid=GPU0, xid=13))
    patient.read()
    patient.report(Event(uuid=GPU0, xid=79))

    assert patient.now.gpus[0].health == Health(healthy=False, reason="XID 79; XID 13", since="0005")


def test_lost_gpu_stays_in_its_place() -> None:
    """It is sick, with the reason; one that went without a problem is gone."""
    patient = Patient(t4s(3))
    patient.read(lost=[0])
    patient.whole = node(gpu(0), gpu(1))
    patient.read(lost=[0])

    assert [one.index for one in patient.now.gpus] == [0, 1]
    assert patient.now.gpus[0].health == Health(healthy=False, reason="GPU 0 is out", since="0010")


def test_gpu_that_took_the_place_of_another() -> None:
    """Indices move when a machine starts with one GPU less: what is readable is not lost."""
    patient = Patient(t4s(2))
    patient.whole = node(replace(gpu(0), index=1))

    patient.read(unreadable=[0])

    assert [(one.uuid, one.health.healthy) for one in patient.now.gpus] == [(GPU0, True)]


@pytest.mark.parametrize(
    "how",
    [
        pytest.param({"lost": [0]}, id="lost"),
        pytest.param({"unreadable": [0]}, id="unreadable"),
        pytest.param({"deaf": {GPU0: "busy"}}, id="events cannot be had"),
    ],
)
def test_unreadable_gpu_recovers(how: dict[str, object]) -> None:
    """Not at the first answer, but within a minute; each bad one begins it anew."""
    patient = Patient(t4s(2))
    patient.read(**how)  # type: ignore[arg-type]
    assert patient.sick == ["0"]
    patient.read()
    patient.read()
    patient.read(**how)  # type: ignore[arg-type]

    readings = patient.readings_until_well()

    assert readings >= troubles.PROBES
    assert troubles.QUIET_SECONDS <= readings * STEP < 60


def test_application_error_recovers() -> None:
    """When none was reported for a while."""
    patient = Patient(t4s(1))
    patient.report(Event(uuid=GPU0, xid=31))
    patient.read()
    patient.read()
    patient.report(Event(uuid=GPU0, xid=31))

    assert patient.readings_until_well() * STEP >= troubles.QUIET_SECONDS


def test_relapses_take_longer() -> None:
    """A GPU that goes up and down stays down longer each time, up to a limit; after a good while it starts over."""
    patient = Patient(t4s(1))
    takes = []
    for _ in range(9):
        patient.report(Event(uuid=GPU0, xid=31))
        takes.append(patient.readings_until_well())
    patient.seconds += troubles.RELAPSE_SECONDS
    patient.report(Event(uuid=GPU0, xid=31))

    assert takes == sorted(takes)
    assert takes[1] > takes[0]
    assert (takes[-1] - 1) * STEP == troubles.LONGEST_QUIET_SECONDS
    assert patient.readings_until_well() == takes[0]


@pytest.mark.parametrize(
    ("recovery", "is_over"),
    [
        pytest.param(None, False, id="does not tell"),
        pytest.param(Recovery.RESET, False, id="asks for a reset"),
        pytest.param(Recovery.NONE, True, id="asks for nothing"),
    ],
)
def test_hardware_error_is_over_when_the_driver_says_so(recovery: Recovery | None, *, is_over: bool) -> None:
    """However long it is quiet otherwise."""
    patient = Patient(t4s(2))
    patient.report(Event(uuid=GPU1, xid=79))
    assert patient.troubles.places == (1,)

    readings = patient.readings_until_well(recoveries={GPU1: recovery} if recovery else {})

    assert (readings > 0) is is_over
    if recovery is Recovery.RESET:
        assert patient.now.gpus[1].health.reason == "XID 79; the driver asks for a reset of the GPU"


def test_reset_brings_a_lost_gpu_back() -> None:
    """Nothing else does, so what was wrong before is over with it."""
    patient = Patient(t4s(1))
    patient.report(Event(uuid=GPU0, xid=79))
    patient.read(lost=[0])

    assert patient.readings_until_well() * STEP >= troubles.QUIET_SECONDS


def test_unreadable_is_not_lost() -> None:
    """A GPU that just could not be read for a moment has not been reset."""
    patient = Patient(t4s(1))
    patient.report(Event(uuid=GPU0, xid=79))
    patient.read(unreadable=[0])

    assert patient.readings_until_well() == -1


@pytest.mark.parametrize(
    ("before", "after", "is_over"),
    [
        pytest.param("boot-1", "boot-2", True, id="loaded anew"),
        pytest.param("boot-1", "boot-1", False, id="the same"),
        pytest.param("boot-1", "", False, id="not known now"),
        pytest.param("", "boot-1", False, id="not known then"),
    ],
)
def test_driver_that_was_loaded_anew(before: str, after: str, *, is_over: bool) -> None:
    """That resets all GPUs: nothing has to be waited for."""
    patient = Patient(t4s(1))
    patient.read(driver_load=before)
    patient.report(Event(uuid=GPU0, xid=79))
    patient.read(driver_load=after)

    assert (patient.sick == []) is is_over


def test_mig_instance_that_is_gone() -> None:
    """Its troubles go with it; those of the GPU stay."""
    patient = Patient(node(split_gpu(0, "1g.5gb", "1g.5gb"), split_gpu(1, "1g.5gb")))
    patient.report(Event(uuid=GPU0, xid=79, gpu_instance=8))
    patient.report(Event(uuid=GPU1, xid=79))
    patient.whole = node(split_gpu(0, "1g.5gb"), split_gpu(1))
    patient.read()

    assert patient.sick == ["1"]
    assert [trouble.gpu for trouble in patient.troubles.known] == [GPU1]


def test_driver_that_stops_answering() -> None:
    """Everything is sick, and what was sick before keeps its reason."""
    patient = Patient(t4s(2))
    patient.report(Event(uuid=GPU0, xid=79))
    patient.now = patient.troubles.fail(patient.now, "no driver", patient.moment)

    assert [one.health.reason for one in patient.now.gpus] == ["XID 79; no driver", "no driver"]


def test_next_agent_knows() -> None:
    """State, reason and time survive a restart, also of a GPU that nobody can read any more."""
    first = Patient(t4s(3))
    first.read(driver_load="boot-1")
    first.report(Event(uuid=GPU0, xid=79))
    first.read(lost=[2], driver_load="boot-1")
    second = first.next()
    second.read(lost=[2], driver_load="boot-1")

    assert second.now.gpus == first.now.gpus
    second.read(driver_load="boot-2")
    assert second.sick == []


def test_clock_that_jumps() -> None:
    """The time of day is only told: nothing waits for it."""
    patient = Patient(t4s(1))
    patient.troubles.report(Event(uuid=GPU0, xid=31), Moment(text="2099-01-01T00:00:00Z", seconds=patient.seconds))

    assert patient.readings_until_well() * STEP < 60


def test_gpu_that_is_lost_while_no_agent_looks() -> None:
    """The next one has never read it, and knows its place all the same."""
    second = Patient(t4s(3)).next()

    second.read(lost=[1])

    assert [one.index for one in second.now.gpus] == [0, 1, 2]
    assert second.sick == ["1"]


def test_gpu_that_was_taken_out() -> None:
    """It is forgotten once the machine has started without it, unless only that it is unreadable was known: then at once."""
    first = Patient(t4s(3))
    first.read(driver_load="boot-1")
    first.report(Event(uuid=GPU0, xid=79))
    first.read(lost=[0, 1], driver_load="boot-1")
    second = first.next(node(gpu(2)))
    second.read()

    assert {(trouble.gpu, trouble.cause) for trouble in second.troubles.known} == {(GPU0, Cause.HARDWARE)}
    second.read(driver_load="boot-2")
    assert second.troubles.known == ()
    assert [one.index for one in second.now.gpus] == [2]
