"""What speaks against a configuration although each of its keys is right, and what is only odd about it. Used by `parsing`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from gpushare.api import schema
from gpushare.api.converting import blocks_of, offered_as
from gpushare.api.documents import Document, Location, path_of
from gpushare.api.sharing import MAX_RESOURCE_NAME
from gpushare.domain.fractions import Isolation
from gpushare.errors import Problem

_SHORTEST_SLEEP: Final = 1.0
_ONLY_OF_FRACTIONS: Final = ("slots", "memoryUnit", "placement", "isolation", "compute", "memoryScaling", "coreScaling")
"""Keys of the extension block that say how fractions are served."""
_IDLE_IN: Final = {"hami": ("memoryUnit", "allocation"), "aliyun": ("slots", "allocation")}
"""Keys of the block that mean nothing in a dialect."""
_Remark = tuple[Location, str]


def contradictions_of(model: schema.Configuration, document: Document) -> Iterator[Problem]:
    """What no single key is to blame for."""
    sharing = model.sharing
    if sharing is not None and sharing.time_slicing is not None and sharing.mps is not None:
        message = "timeSlicing and mps exclude each other; keep one of the two"
        yield Problem(path="sharing", message=message, line=document.line_of(("sharing",)))
    for word, block in blocks_of(model):
        yield from _double_names(word, block, document)
    for word, message in _why_no_fractions(model):
        location = ("gpushare", word)
        yield Problem(path=path_of(location), message=message, line=document.line_of(location))


def _why_no_fractions(model: schema.Configuration) -> Iterator[tuple[str, str]]:
    """Keys of the extension block that cannot be had together, each with what to write instead."""
    block = model.gpushare
    if block is None or block.fractions == "none":
        return
    for word, shared in blocks_of(model):
        if any(entry.replicas > 1 for entry in shared.resources):
            yield "fractions", f"fractions share the GPUs already, and so does sharing.{word}; keep one of the two"
    if block.fractions == "aliyun" and block.isolation is Isolation.EXCLUSIVE:
        message = "aliyun gives out units of memory, which are never a whole GPU; write hami-core, mps or none"
        yield "isolation", f'{message}, or "fractions: hami"'
    if block.isolation is Isolation.EXCLUSIVE:
        if "slots" in block.model_fields_set and block.slots > 1:
            yield "slots", "exclusive gives a GPU to one container; remove slots, or choose another isolation"
        if block.memory_scaling > 1 or block.core_scaling > 1:
            word = "memoryScaling" if block.memory_scaling > 1 else "coreScaling"
            yield word, "exclusive gives a GPU to one container, who cannot have more than all of it; remove it"


def _double_names(word: str, block: schema.Replicated, document: Document) -> Iterator[Problem]:
    seen: dict[str, str] = {}
    offered: dict[str, str] = {}
    for position, entry in enumerate(block.resources):
        location = ("sharing", word, "resources", position)
        name = offered_as(block, entry)
        field, message = "name", ""
        if len(name) > MAX_RESOURCE_NAME:
            message = (
                f'"{name}" has {len(name)} characters; Kubernetes takes {MAX_RESOURCE_NAME}: give a shorter rename'
            )
        elif entry.name in seen:
            message = f'"{entry.name}" is already shared by {seen[entry.name]}; keep one of the two'
        elif name in offered:
            field, message = "rename", f'"{name}" is already what {offered[name]} is offered as; give another rename'
        if message:
            place = (*location, field)
            yield Problem(path=path_of(place), message=message, line=document.line_of(place))
        seen.setdefault(entry.name, path_of(location))
        offered.setdefault(name, path_of(location))


def oddities_of(model: schema.Configuration, document: Document) -> Iterator[Problem]:
    """What is allowed but does not do what its writer may think."""
    for location, message in (
        *_idle_patterns(model),
        *_odd_interval(model),
        *_idle_extension(model),
        *_idle_renames(model),
    ):
        yield Problem(path=path_of(location), message=message, line=document.line_of(location))


def _idle_patterns(model: schema.Configuration) -> Iterator[_Remark]:
    for word in ("gpus", "mig"):
        if getattr(model.resources, word, None):
            message = "patterns are ignored, as by NVIDIA's device plugin; every device has its usual resource name"
            yield ("resources", word), message


def _odd_interval(model: schema.Configuration) -> Iterator[_Remark]:
    interval = model.flags.gfd.sleep_interval if model.flags and model.flags.gfd else None
    if interval is not None and interval < _SHORTEST_SLEEP:
        message = "is less than a second (a number alone counts nanoseconds); write 60s or the like"
        yield ("flags", "gfd", "sleepInterval"), message


def _idle_extension(model: schema.Configuration) -> Iterator[_Remark]:
    block = model.gpushare
    if block is None:
        return
    written = [schema.ExtensionBlock.model_fields[field].alias or field for field in block.model_fields_set]
    idle = _ONLY_OF_FRACTIONS if block.fractions == "none" else _IDLE_IN[block.fractions]
    ending = "without fractions" if block.fractions == "none" else f'with "fractions: {block.fractions}"'
    for word in (*_ONLY_OF_FRACTIONS, "allocation"):
        if word in written and word in idle:
            yield ("gpushare", word), f"has no effect {ending}"


def _idle_renames(model: schema.Configuration) -> Iterator[_Remark]:
    for word, block in blocks_of(model):
        for position, entry in enumerate(block.resources):
            if entry.replicas == 1 and entry.rename is not None:
                location = ("sharing", word, "resources", position, "rename")
                yield location, "has no effect with replicas 1, which means not shared"
