"""Requests in HAMi's dialect: GPUs by number, memory in MiB or percent, compute in percent, each a GPU. Read for `requests`."""

from __future__ import annotations

from collections.abc import Iterator

from gpushare.domain.amounts import MOST
from gpushare.placement.reading import ContainerReader
from gpushare.placement.settings import RequestSettings
from gpushare.placement.shapes import WHOLE, ContainerRequest


def words(settings: RequestSettings) -> Iterator[str]:
    """The resources by which a part of a GPU is asked for."""
    return filter(None, (settings.memory, settings.memory_percentage, settings.cores))


def asks_for_fractions(reader: ContainerReader, settings: RequestSettings) -> bool:
    """Whether a container names memory or compute, and so cannot mean a whole GPU of NVIDIA's plugin."""
    return any(map(reader.has, words(settings)))


def mind_priority(reader: ContainerReader, settings: RequestSettings) -> None:
    """Warns of a priority in a pod that concerns nobody of ours: nothing reads it there, and the pod may wait for it for ever."""
    if reader.has(settings.priority):
        others = ", ".join(words(settings))
        reader.warn(
            settings.priority, f"does nothing without a part of a GPU; write one of {others} too, or leave it out"
        )


def read_container(reader: ContainerReader, settings: RequestSettings) -> ContainerRequest | None:
    """What one container of a pod that concerns us asks for; None: for no GPU, or for nonsense, which is then reported."""
    count = _read_count(reader, settings)
    if not count:
        if reader.has(settings.priority) and not reader.has(settings.count):
            reader.warn(settings.priority, "has no effect on a container without a GPU")
        return None
    memory, percent = _read_memory(reader, settings)
    return ContainerRequest(
        name=reader.name,
        kind=reader.kind,
        gpus=count,
        memory_mib=memory,
        memory_percent=percent,
        cores=_read_cores(reader, settings, is_whole=percent == WHOLE),
        priority=reader.read(settings.priority),
    )


def _read_count(reader: ContainerReader, settings: RequestSettings) -> int:
    count = reader.read(settings.count)
    if count is None and not reader.has(settings.count) and asks_for_fractions(reader, settings):
        count = settings.default_count
    if count == 0 and asks_for_fractions(reader, settings):
        message = f"asks for memory or compute but for no GPU; write how many, as in {settings.count}: 1"
        reader.refuse(settings.count, message)
    return count or 0


def _read_memory(reader: ContainerReader, settings: RequestSettings) -> tuple[int, int]:
    """MiB, or else percent, of each GPU. Without either the default, or all of it. 0 means that nothing was written."""
    memory = reader.read(settings.memory, "MiB") or 0
    percent = reader.read(settings.memory_percentage) or 0
    if memory * settings.memory_factor > MOST:
        reader.refuse(settings.memory, f"{memory} times {settings.memory_factor} MiB is more than there can be")
    if percent > WHOLE:
        reader.refuse(settings.memory_percentage, f"{percent} is more than all; write 1 to 100")
    if memory:
        if percent:
            reader.warn(settings.memory_percentage, f"has no effect beside {settings.memory}")
        return memory * settings.memory_factor, 0
    if not percent and settings.default_memory:
        return settings.default_memory, 0
    return 0, percent or WHOLE


def _read_cores(reader: ContainerReader, settings: RequestSettings, *, is_whole: bool) -> int:
    """Percent of each GPU. Who takes all memory and says nothing takes the GPU alone."""
    if not reader.has(settings.cores):
        return WHOLE if is_whole else settings.default_cores
    cores = reader.read(settings.cores) or 0
    if cores > WHOLE:
        reader.warn(settings.cores, f"{cores} is taken as 100, the whole GPU")
    return min(cores, WHOLE)
