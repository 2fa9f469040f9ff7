"""The daemons of a machine: begun, left alone, found again, ended; and what is remembered of them."""

from __future__ import annotations

import logging
import os
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from gpushare.host import processes
from gpushare.host.files import HostFiles
from gpushare.host.mps import CONTROL, MpsMachine, Patience
from gpushare.host.remembering import ValueFile
from gpushare.mps.daemons import SILENCES, Begun, Daemons
from gpushare.sharing.mps import MemoryLimit, MpsDaemon
from support.mps_nodes import GPU, HURRY, PATIENCE
from support.mps_programs import MpsPrograms, daemon_pid, kill_daemon

LOG = logging.getLogger("test")
SHARED = "nvidia.com/gpu.shared"
QUARTERS = MpsDaemon(
    resource=GPU,
    thread_percentage=25,
    memory_limits=(MemoryLimit(gpu_index=0, mib=3840), MemoryLimit(gpu_index=1, mib=3840)),
    gpus=("GPU-0", "GPU-1"),
)
HALVES = MpsDaemon(resource=GPU, thread_percentage=50, gpus=("GPU-1",))
OTHER = MpsDaemon(resource=SHARED, thread_percentage=50, gpus=("GPU-2",))
PRESENT = ("GPU-0", "GPU-1", "GPU-2")


class Site:
    """A machine on which processes with daemons follow one another."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.programs = MpsPrograms(root / "bin")

    def process(self, patience: Patience = PATIENCE) -> Daemons:
        machine = MpsMachine(HostFiles(self.root), self.programs.environ, lambda: "/driver-root", LOG, patience)
        return Daemons(machine, self.memory, LOG)

    @property
    def memory(self) -> ValueFile[Begun]:
        return ValueFile(self.root / "mps.json", Begun, LOG)

    @property
    def modes(self) -> dict[str, str]:
        """The compute mode of each GPU that was ever set."""
        words = [command.split() for command in self.programs.smi_commands]
        return {uuid: mode for _, uuid, _, mode in words}


@pytest.fixture
async def site(tmp_path: Path) -> AsyncIterator[Site]:
    made = Site(tmp_path)
    yield made
    for resource in (GPU, SHARED):
        kill_daemon(tmp_path, resource)


async def apply(daemons: Daemons, *wanted: MpsDaemon, present: tuple[str, ...] = PRESENT) -> None:
    await daemons.apply({daemon.resource: daemon for daemon in wanted}, present)


async def test_begin(site: Site) -> None:
    """Compute modes, the daemon, its limits: memory by index, threads last."""
    daemons = site.process()

    await apply(daemons, QUARTERS)

    assert site.modes == {"GPU-0": "EXCLUSIVE_PROCESS", "GPU-1": "EXCLUSIVE_PROCESS"}
    assert site.programs.control_commands == [
        "set_default_device_pinned_mem_limit 0 3840M",
        "set_default_device_pinned_mem_limit 1 3840M",
        "set_default_active_thread_percentage 25",
    ]
    assert (set(daemons.running), daemons.troubles) == ({GPU}, {})
    assert (site.root / "mps/.ready").exists()


async def test_nothing_wanted(site: Site) -> None:
    """A machine that shares nothing by MPS is ready all the same, and nothing is asked of anybody."""
    daemons = site.process()

    await apply(daemons)

    assert not daemons.running
    assert (site.programs.control_commands, site.programs.smi_commands) == ([], [])


async def test_unchanged_is_not_touched(site: Site) -> None:
    """Another daemon comes; the clients of the first notice nothing."""
    daemons = site.process()
    await apply(daemons, QUARTERS)
    pid = daemon_pid(site.root, GPU)
    site.programs.forget()

    await apply(daemons, QUARTERS, OTHER)

    assert daemon_pid(site.root, GPU) == pid
    assert site.programs.told == ["set_default_active_thread_percentage 50"]
    assert site.modes == {"GPU-2": "EXCLUSIVE_PROCESS"}


async def test_changed_is_begun_anew(site: Site) -> None:
    """Limits hold from the start of a daemon; a GPU that is shared no longer is everybody's again."""
    daemons = site.process()
    await apply(daemons, QUARTERS)
    pid = daemon_pid(site.root, GPU)
    site.programs.forget()

    await apply(daemons, HALVES)

    assert daemon_pid(site.root, GPU) not in {None, pid}
    assert site.programs.told == ["quit", "set_default_active_thread_percentage 50"]
    assert site.modes == {"GPU-0": "DEFAULT", "GPU-1": "EXCLUSIVE_PROCESS"}


async def test_end(site: Site) -> None:
    """It quits, its GPUs are everybody's, and nothing is left but the directory of its pipe."""
    daemons = site.process()
    await apply(daemons, QUARTERS, OTHER)
    site.programs.forget()

    await daemons.end_all()

    assert site.programs.told == ["quit", "quit"]
    assert site.modes == dict.fromkeys(PRESENT, "DEFAULT")
    assert site.memory.read() == Begun()
    assert not (site.root / "mps/.ready").exists()


async def test_found_again(site: Site) -> None:
    """A process that was killed leaves its daemons and their clients; the next one goes on with them."""
    await apply(site.process(), QUARTERS)
    pid = daemon_pid(site.root, GPU)
    site.programs.forget()

    later = site.process()
    await apply(later, QUARTERS)

    assert daemon_pid(site.root, GPU) == pid
    assert site.programs.told == []
    assert set(later.running) == {GPU}


async def test_found_dead(site: Site) -> None:
    """A container that was killed takes the daemon with it: it is begun anew."""
    await apply(site.process(), QUARTERS)
    kill_daemon(site.root, GPU)
    site.programs.forget()

    later = site.process()
    await apply(later, QUARTERS)

    assert site.programs.told[-1] == "set_default_active_thread_percentage 25"
    assert (set(later.running), later.troubles) == ({GPU}, {})


async def test_repair(site: Site) -> None:
    """Nobody shares any more when the next process comes: what the killed one left behind goes."""
    await apply(site.process(), QUARTERS)
    pid = daemon_pid(site.root, GPU)
    assert pid is not None
    site.programs.forget()

    await apply(site.process())

    assert await processes.wait_for_end(pid, CONTROL, PATIENCE.end)
    assert site.modes == {"GPU-0": "DEFAULT", "GPU-1": "DEFAULT"}


async def test_killed_before_the_daemon_began(site: Site) -> None:
    """What was to be done is remembered before it is done."""
    site.programs.now("start-fails")
    daemons = site.process()
    await apply(daemons, QUARTERS)
    assert daemons.troubles == {GPU: "nvidia-cuda-mps-control failed with status 1: cannot create log file"}
    assert not (site.root / "mps/.ready").exists()

    site.programs.no_more("start-fails")
    await apply(site.process())

    assert site.modes == {"GPU-0": "DEFAULT", "GPU-1": "DEFAULT"}


async def test_tried_again(site: Site) -> None:
    """What failed is tried again; what works is left alone meanwhile."""
    daemons = site.process()
    await apply(daemons, OTHER)
    pid = daemon_pid(site.root, SHARED)
    site.programs.now("start-fails")
    await apply(daemons, OTHER, QUARTERS)
    assert set(daemons.running) == {SHARED}

    site.programs.no_more("start-fails")
    await apply(daemons, OTHER, QUARTERS)

    assert set(daemons.running) == {SHARED, GPU}
    assert daemon_pid(site.root, SHARED) == pid


async def test_modes_cannot_be_set(site: Site) -> None:
    """Without a single GPU of its own there is no daemon; back to DEFAULT is tried until it works."""
    site.programs.now("smi-fails")
    daemons = site.process()
    await apply(daemons, OTHER)
    assert "compute mode EXCLUSIVE_PROCESS cannot be set" in daemons.troubles[SHARED]

    await apply(daemons)
    assert list(daemons.troubles) == ["GPU-2"]

    site.programs.no_more("smi-fails")
    await apply(daemons)
    assert daemons.troubles == {}
    assert site.memory.read() == Begun()


async def test_gpu_that_is_gone(site: Site) -> None:
    """Nobody can restore the compute mode of a GPU that was taken out of the machine."""
    daemons = site.process()
    await apply(daemons, OTHER)
    site.programs.now("smi-fails")

    await apply(daemons, present=("GPU-0",))

    assert (daemons.begun, daemons.troubles) == ({}, {})
    assert site.memory.read() == Begun()


async def test_does_not_quit(site: Site) -> None:
    """The new one comes once the old one is gone, if it has to be killed for it."""
    daemons = site.process(HURRY)
    await apply(daemons, QUARTERS)
    pid = daemon_pid(site.root, GPU)
    assert pid is not None
    site.programs.now("stubborn")

    await apply(daemons, HALVES)

    assert not processes.is_alive(pid, CONTROL)
    assert (set(daemons.running), daemons.troubles) == ({GPU}, {})


async def test_cannot_be_ended(site: Site) -> None:
    """It is reported, the new one waits, and the GPUs are given back in the end all the same."""
    daemons = site.process(HURRY)
    await apply(daemons, QUARTERS)
    pid = daemon_pid(site.root, GPU)
    assert pid is not None
    site.programs.now("stubborn")
    (site.root / "mps" / GPU / "pipe/nvidia-cuda-mps-control.pid").write_text(f"{os.getpid()}\n")

    await apply(daemons, HALVES)
    assert "does not quit, and nothing says which process it is" in daemons.troubles[GPU]
    assert not daemons.running
    assert daemons.begun == {GPU: QUARTERS}

    await daemons.end_all()
    assert site.modes == {"GPU-0": "DEFAULT", "GPU-1": "DEFAULT"}
    processes.kill(pid)


async def test_look(site: Site) -> None:
    """A daemon that has gone is noticed at once and begun anew by the next pass."""
    daemons = site.process()
    await apply(daemons, QUARTERS)
    assert await daemons.look()

    kill_daemon(site.root, GPU)
    assert not await daemons.look()

    await apply(daemons, QUARTERS)
    assert await daemons.look()


async def test_slow_is_not_dead(site: Site) -> None:
    """Only who is silent again and again is given up: a restart ends all clients."""
    daemons = site.process(HURRY)
    await apply(daemons, QUARTERS)
    site.programs.now("hangs")
    for _ in range(SILENCES - 1):
        assert await daemons.look()

    site.programs.no_more("hangs")
    assert await daemons.look()

    site.programs.now("hangs")
    assert [await daemons.look() for _ in range(SILENCES)] == [True] * (SILENCES - 1) + [False]


async def test_other_limits(site: Site) -> None:
    """Somebody has told the daemon something else: it is told again."""
    daemons = site.process()
    await apply(daemons, HALVES)
    (site.root / "mps" / GPU / "pipe/percentage").write_text("100\n")
    site.programs.forget()

    assert await daemons.look()

    assert site.programs.told == ["set_default_active_thread_percentage 50"]
