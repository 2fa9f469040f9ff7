"""Reads what connects the GPUs of a node, and inventories for those who have no host to ask. Used by the agent, tools and people.

Each GPU's NVLinks are read once and each pair is asked for once, since on some machines an answer takes half a second. What
cannot be read is a problem of the GPU or the pair that it concerns; of the others everything is known.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

from gpushare.domain.devices import GPU, Inventory
from gpushare.domain.links import Ancestor, Link
from gpushare.errors import DeviceError, Problem
from gpushare.nvml.port import DriverUnavailable, NotSupported, NvLink, Nvml


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadLinks:
    """What connects some GPUs, and what is to be said about it."""

    links: tuple[Link, ...] = ()
    """One for each two GPUs of which both could be asked."""
    problems: tuple[Problem, ...] = ()
    is_complete: bool = True
    """False: something could not be read, and may be another time."""


def read_links(nvml: Nvml, gpus: Sequence[GPU]) -> ReadLinks:
    """Asks for the links between these GPUs.

    Raises:
        DeviceError: the driver as a whole cannot be asked.
    """
    problems: list[Problem] = []
    found: dict[int, Sequence[NvLink]] = {}
    for gpu in gpus:
        try:
            found[gpu.index] = nvml.nvlinks(gpu.index)
        except DriverUnavailable:
            raise
        except DeviceError as error:
            problems.append(Problem(path=f"gpus[{gpu.index}].nvlink", message=str(error)))
    # In order, so that a Link names the lower index first.
    asked = sorted((gpu for gpu in gpus if gpu.index in found), key=lambda gpu: gpu.index)
    counts = {
        gpu.index: Counter(link.remote_bus_id for link in found[gpu.index] if not link.to_switch) for gpu in asked
    }
    switched = {index: sum(link.to_switch for link in links) for index, links in found.items()}
    links = tuple(
        Link(
            gpus=(one.index, two.index),
            ancestor=_read_ancestor(nvml, one, two, problems),
            nvlinks=min(counts[one.index][two.bus_id], counts[two.index][one.bus_id]),
            switched=min(switched[one.index], switched[two.index]),
        )
        for one, two in combinations(asked, 2)
    )
    return ReadLinks(links=links, problems=(*problems, *_one_sided(asked, counts)), is_complete=not problems)


def read_inventory(nvml: Nvml) -> Inventory:
    """All GPUs that can be read, with their links. The agent's discovery tells more, since it asks the host as well.

    Raises:
        DeviceError: the driver as a whole cannot be asked. A single GPU that cannot is a problem of the inventory.
    """
    nvml.start()
    driver = nvml.driver()
    problems: list[Problem] = []
    gpus = tuple(read_gpus(nvml, problems))
    read = read_links(nvml, gpus)
    return Inventory(
        gpus=gpus,
        driver_version=driver.version,
        cuda_version=driver.cuda_version,
        problems=tuple(problems),
        links=read.links,
        link_problems=read.problems,
    )


def read_gpus(nvml: Nvml, problems: list[Problem]) -> Iterator[GPU]:
    """Each GPU that can be read; adds those that cannot to `problems`. Raises DriverUnavailable."""
    for index in range(nvml.count()):
        try:
            yield nvml.gpu(index)
        except DriverUnavailable:
            raise  # the driver went while GPUs were read: a node whose GPUs nobody knows is not one without GPUs
        except DeviceError as error:
            problems.append(Problem(path=f"gpus[{index}]", message=str(error)))


def _read_ancestor(nvml: Nvml, one: GPU, two: GPU, problems: list[Problem]) -> Ancestor | None:
    try:
        return nvml.ancestor(one.index, two.index)
    except DriverUnavailable:
        raise
    except NotSupported:
        return None  # a virtual GPU has no place in the PCI tree
    except DeviceError as error:
        problems.append(Problem(path=f"gpus[{one.index}]", message=str(error)))
        return None


def _one_sided(gpus: Sequence[GPU], counts: Mapping[int, Counter[str]]) -> Iterator[Problem]:
    for one, two in combinations(gpus, 2):
        there, back = counts[one.index][two.bus_id], counts[two.index][one.bus_id]
        if there != back:
            message = f"{there} NVLinks to GPU {two.index}, which counts {back} back; the lesser number is believed"
            yield Problem(path=f"gpus[{one.index}].nvlink", message=message)
