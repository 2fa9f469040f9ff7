"""Requests in Alibaba's dialect: units of memory, percent of compute, over several GPUs by a label. Read for `requests`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from gpushare import names
from gpushare.domain.amounts import AmountError, parse_whole
from gpushare.domain.manifests import Manifest
from gpushare.errors import Problem
from gpushare.placement.reading import ContainerReader, Findings
from gpushare.placement.settings import RequestSettings
from gpushare.placement.shapes import WHOLE, ContainerRequest

_STEP: Final = 5
"""Percent in which compute is given out."""


def read_count(pod: Manifest, findings: Findings, *, has_memory: bool) -> int:
    """Over how many GPUs the memory of each container is spread. The label alone asks for nothing."""
    text = ((pod.get("metadata") or {}).get("labels") or {}).get(names.RESOURCE_ALIYUN_COUNT)
    if text is None:
        return 1
    path = f"metadata.labels[{names.RESOURCE_ALIYUN_COUNT}]"
    if not has_memory:
        message = f"has no effect on a pod that asks for no {names.RESOURCE_ALIYUN_MEM}"
        findings.warnings.append(Problem(path=path, message=message))
        return 1
    try:
        count = parse_whole(text)
    except AmountError as error:
        findings.problems.append(Problem(path=path, message=str(error)))
        return 1
    if count == 0:
        findings.problems.append(Problem(path=path, message="0 GPUs cannot hold memory; write 1 or more"))
    return max(count, 1)


def words(settings: RequestSettings) -> Sequence[str]:
    """The resources of this dialect."""
    return settings.aliyun_memory, settings.aliyun_cores, names.RESOURCE_ALIYUN_COUNT


def asks_for_fractions(reader: ContainerReader, settings: RequestSettings) -> bool:
    """Whether a container names a resource of this dialect."""
    return any(map(reader.has, words(settings)))


def refuse_mixture(readers: Sequence[ContainerReader], settings: RequestSettings) -> None:
    """Compute in some containers of a pod and not in others: no other pod could come to its node, with compute or without."""
    without = [each for each in readers if each.has(settings.aliyun_memory) and not each.has(settings.aliyun_cores)]
    if any(each.has(settings.aliyun_cores) for each in readers):
        for reader in without:
            message = (
                f"another container asks for {settings.aliyun_cores} too; write it for each container, or for none"
            )
            reader.refuse(settings.aliyun_memory, message)


def read_container(reader: ContainerReader, count: int, settings: RequestSettings) -> ContainerRequest | None:
    """What one container asks for; None: for no memory, or for nonsense, which is then reported.

    Args:
        reader: the container.
        count: GPUs of the pod.
        settings: names of the resources.
    """
    units = reader.read(settings.aliyun_memory, "units") or 0
    cores = reader.read(settings.aliyun_cores) or 0
    if cores and not units and not reader.has(settings.aliyun_memory):
        reader.refuse(settings.aliyun_cores, f"needs memory too; write {settings.aliyun_memory} as well")
    if cores % _STEP or cores > WHOLE:
        reader.refuse(settings.aliyun_cores, f"{cores} is no step of 5 up to 100; write 5, 10, 15, ...")
    if cores and count > 1:
        message = f"cannot be limited on {count} GPUs; leave it out, or the label {names.RESOURCE_ALIYUN_COUNT}"
        reader.refuse(settings.aliyun_cores, message)
    if units % count:
        message = f"{units} units cannot be spread evenly over {count} GPUs; write a multiple of {count}"
        reader.refuse(settings.aliyun_memory, message)
    if reader.has(names.RESOURCE_ALIYUN_COUNT):
        # The device plugin refuses it too, once it is too late: nodes show it, and nobody can have it.
        message = (
            f"only says how many GPUs a node has; leave it out and ask for {settings.aliyun_memory}; over how many GPUs, "
            "the label of that name of the pod says"
        )
        reader.refuse(names.RESOURCE_ALIYUN_COUNT, message)
    if not units:
        return None
    return ContainerRequest(name=reader.name, kind=reader.kind, gpus=count, units=units // count, cores=cores)
