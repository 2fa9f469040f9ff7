"""Inventories from texts: a node's description, a sandbox's scenario, or what `gpushare topology -o yaml` printed elsewhere.

Called by the command line, for machines that have no GPU. A saved topology has links:

    gpus:
    - {index: 0, uuid: GPU-..., product: Tesla V100-SXM2-32GB, bus: "0000:06:00.0", numa: 0}
    links:
    - {gpus: [0, 1], place: PIX, nvlinks: 1}
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from gpushare.api.documents import Document, read_document
from gpushare.domain.devices import GPU, Health, Inventory
from gpushare.domain.links import WORDS, Ancestor, Link
from gpushare.errors import ConfigurationError, Problem
from gpushare.nvml.reading import read_inventory
from gpushare.nvml.simulated import SimulatedNvml

_PLACES: Final[Mapping[str, Ancestor]] = {word: ancestor for ancestor, word in WORDS.items()}


def parse_inventory(text: str, node: str = "") -> Inventory:
    """Reads one node's GPUs and their links. `node`: which one, of a scenario; without it the first one that has GPUs.

    Raises:
        ConfigurationError: with every problem, its path and its line.
    """
    document = read_document(text)
    try:
        data, prefix = _node_of(document.data, node)
        if "links" not in data:
            return _described(data, prefix)
        return _saved(data)
    except ConfigurationError as error:
        raise ConfigurationError(_located(error.problems, document)) from None


def _node_of(data: Any, name: str) -> tuple[Mapping[str, Any], str]:
    """What one node has, and where that stands in the text."""
    if not isinstance(data, Mapping):
        raise _refusal("", "must hold gpus: a list such as [{model: Tesla-T4, count: 4}]")
    nodes = data.get("nodes")
    if nodes is None:
        if name:
            raise _refusal("", f'has no nodes, so none is called "{name}"')
        return data, ""
    found = [
        (node, f"nodes[{position}].")
        for position, node in enumerate(nodes if isinstance(nodes, Sequence) else ())
        if isinstance(node, Mapping) and (node.get("name") == name if name else node.get("gpus"))
    ]
    if not found:
        raise _refusal("nodes", f'none is called "{name}"' if name else "none has GPUs")
    if not found[0][0].get("gpus"):
        raise _refusal(found[0][1].rstrip("."), f'"{name}" has no GPUs')
    return found[0]


def _described(data: Mapping[str, Any], prefix: str) -> Inventory:
    hardware = {key: data[key] for key in data if not prefix or key in ("driver", "gpus")}
    try:
        return read_inventory(SimulatedNvml.from_mapping(hardware, seed=str(data.get("name", ""))))
    except ConfigurationError as error:
        raise ConfigurationError(
            Problem(path=f"{prefix}{problem.path}", message=problem.message) for problem in error.problems
        ) from None


def _saved(data: Mapping[str, Any]) -> Inventory:
    problems: list[Problem] = []
    gpus = tuple(_gpus(data.get("gpus"), problems))
    links = tuple(_links(data.get("links"), {gpu.index for gpu in gpus}, problems))
    if problems:
        raise ConfigurationError(problems)
    return Inventory(gpus=tuple(sorted(gpus, key=lambda gpu: gpu.index)), links=links)


def _gpus(entries: Any, problems: list[Problem]) -> Iterator[GPU]:
    seen: set[int] = set()
    for path, entry in _entries(entries, "gpus", problems):
        index: Any = entry.get("index")
        if not _is_count(index) or index in seen:
            problems.append(Problem(path=f"{path}.index", message="must be a whole number that no other GPU has"))
            continue
        seen.add(index)
        numa = entry.get("numa")
        yield GPU(
            index=index,
            uuid=str(entry.get("uuid") or f"GPU-{index}"),
            product=str(entry.get("product") or "unknown"),
            bus_id=str(entry.get("bus") or ""),
            numa_node=numa if _is_count(numa) else None,
            health=Health(healthy=entry.get("healthy") is not False),
        )


def _links(entries: Any, known: set[int], problems: list[Problem]) -> Iterator[Link]:
    seen: set[tuple[int, int]] = set()
    for path, entry in _entries(entries, "links", problems):
        pair = entry.get("gpus")
        gpus = tuple(sorted(pair)) if isinstance(pair, list) and len(pair) == 2 and all(map(_is_count, pair)) else ()
        if len(gpus) != 2 or gpus[0] == gpus[1] or not set(gpus) <= known or gpus in seen:
            message = f"must be two of the GPUs {', '.join(map(str, sorted(known)))} that have no link yet: [0, 1]"
            problems.append(Problem(path=f"{path}.gpus", message=message))
            continue
        seen.add(gpus)
        place: Any = entry.get("place")
        counts = {key: entry.get(key, 0) for key in ("nvlinks", "switched")}
        if place is not None and place not in _PLACES:
            problems.append(Problem(path=f"{path}.place", message=f"must be one of {', '.join(_PLACES)}"))
        for key, count in counts.items():
            if not _is_count(count):
                problems.append(Problem(path=f"{path}.{key}", message="must be a whole number, 0 or more"))
        yield Link(gpus=gpus, ancestor=_PLACES.get(place), **counts)


def _entries(value: Any, path: str, problems: list[Problem]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    if not isinstance(value, list):
        problems.append(Problem(path=path, message="must be a list"))
        return
    for position, entry in enumerate(value):
        if isinstance(entry, Mapping):
            yield f"{path}[{position}]", entry
        else:
            problems.append(Problem(path=f"{path}[{position}]", message="must hold keys"))


def _is_count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def _refusal(path: str, message: str) -> ConfigurationError:
    return ConfigurationError([Problem(path=path, message=message)])


def _located(problems: Sequence[Problem], document: Document) -> Iterator[Problem]:
    for problem in problems:
        parts = re.findall(r"\[(\d+)\]|([^.\[\]]+)", problem.path)
        location = [int(number) if number else key for number, key in parts]
        yield Problem(path=problem.path, message=problem.message, line=document.line_of(location))
