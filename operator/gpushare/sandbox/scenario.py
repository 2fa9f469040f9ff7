"""Which nodes a sandbox has: from a YAML file, or one of the two built-in clusters. Called by `app`.

A file looks like this; everything but the name of a node may be left out:

    nodes:
    - name: gpu01
      labels: {example.com/rack: r1}
      taints: [{key: nvidia.com/gpu, effect: NoSchedule}]
      cpu: 32
      memory: 128Gi
      discovery: true                  # labels as node feature discovery sets them
      driver: {version: 580.95.05, cuda: "13.0"}
      gpus: [...]                      # see nvml.simulated
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError

from gpushare import names
from gpushare.api.documents import Document, path_of, read_document
from gpushare.errors import ConfigurationError, Problem
from gpushare.nvml.simulated import SimulatedNvml
from gpushare.sandbox.apiserver.objects import quantities
from gpushare.sandbox.node.specs import NodeSpec, Taint

_NAME = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
_LABEL_KEY = re.compile(r"([a-z0-9]([-a-z0-9.]*[a-z0-9])?/)?[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?")
_LABEL_VALUE = re.compile(r"([A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?)?")
_NAME_MAX = 63
"""The name is also the value of the label kubernetes.io/hostname."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ScenarioNode:
    """One node: what its kubelet registers, and what its driver finds."""

    spec: NodeSpec
    hardware: Mapping[str, Any]
    """What `SimulatedNvml.from_mapping` takes: `driver` and `gpus`. Empty: a node without a driver."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Scenario:
    """The nodes of one sandbox."""

    nodes: tuple[ScenarioNode, ...]


def load(path: Path | None = None, *, nodes: int | None = None) -> Scenario:
    """The scenario of a file; without one, `nodes` nodes of four T4; without a number, the cluster of the walk-through.

    Raises:
        ConfigurationError: the file cannot be read or used; with every problem, its path and its line.
    """
    if path is not None:
        return parse(_read(path))
    if nodes is not None:
        width = max(2, len(str(nodes)))
        return _build({"nodes": [{"name": f"gpu{n:0{width}}", **_T4_NODE} for n in range(1, nodes + 1)]})
    return _build(_WALK_THROUGH)


def parse(text: str) -> Scenario:
    """The scenario that a text describes. Raises as `load`."""
    document = read_document(text)
    try:
        return _build(document.data)
    except ValidationError as error:
        raise ConfigurationError(_problems_of(error, document)) from None
    except ConfigurationError as error:
        raise ConfigurationError(_located(error.problems, document)) from None


def _read(path: Path) -> str:
    try:
        return path.read_text()
    except OSError as error:
        raise ConfigurationError([Problem(path="", message=f"cannot be read: {error.strerror}")]) from error
    except UnicodeDecodeError as error:
        raise ConfigurationError([Problem(path="", message="is no text file")]) from error


_T4_NODE: dict[str, Any] = {
    "driver": {"version": "550.90.07", "cuda": "12.4"},
    "gpus": [{"model": "Tesla-T4", "count": 4}],
}
_WALK_THROUGH: dict[str, Any] = {
    "nodes": [
        {"name": "gpu01", **_T4_NODE},
        {
            "name": "gpu02",
            "driver": {"version": "550.90.07", "cuda": "12.4"},
            "gpus": [
                {"model": "A100-SXM4-40GB", "mig": ["1g.5gb", "2g.10gb", "3g.20gb"]},
                {"model": "A100-SXM4-40GB"},
            ],
        },
        {"name": "cpu01"},
    ]
}


def _name(value: str) -> str:
    if len(value) > _NAME_MAX or not _NAME.fullmatch(value):
        raise ValueError(f'"{value}" is no node name; use at most 63 lower-case letters, digits, "-" and "."')
    return value


def _quantity(value: Any) -> str:
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        message = f"must be a number or a quantity such as 64Gi, not {_shown(value)}"
        raise ValueError(message)  # noqa: TRY004 - pydantic takes no other for a wrong value
    try:
        if quantities.parse(value) > 0:
            return quantities.canonical(value)
    except quantities.QuantityError:
        pass
    raise ValueError(f'"{value}" is no quantity; write a number above 0 such as 16, 500m, 64Gi')


def _label_key(value: str) -> str:
    if not _LABEL_KEY.fullmatch(value):
        raise ValueError(f'"{value}" is no label key; they look like example.com/rack')
    return value


def _label_value(value: str) -> str:
    if not _LABEL_VALUE.fullmatch(value):
        raise ValueError(f'"{value}" is no label value; use at most 63 letters, digits, "-", "_" and "."')
    return value


_Quantity = Annotated[Any, AfterValidator(_quantity)]
_LabelKey = Annotated[str, AfterValidator(_label_key)]
_LabelValue = Annotated[str, AfterValidator(_label_value)]


class _Block(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, hide_input_in_errors=True)


class _Taint(_Block):
    key: _LabelKey
    value: _LabelValue = ""
    effect: Literal["NoSchedule", "PreferNoSchedule", "NoExecute"]


class _Node(_Block):
    name: Annotated[str, AfterValidator(_name)]
    labels: dict[_LabelKey, _LabelValue] = {}
    taints: list[_Taint] = []
    cpu: _Quantity = "32"
    memory: _Quantity = "128Gi"
    discovery: bool = True
    driver: Any = None
    gpus: Any = None


class _File(_Block):
    nodes: list[_Node] = Field(min_length=1)


def _build(data: Any) -> Scenario:
    file = _File.model_validate(data)
    problems = [*_twice(file.nodes), *_hardware_problems(file.nodes)]
    if problems:
        raise ConfigurationError(problems)
    return Scenario(nodes=tuple(map(_node_of, file.nodes)))


def _node_of(node: _Node) -> ScenarioNode:
    hardware = _hardware_of(node)
    spec = NodeSpec(
        name=node.name,
        labels={**(_discovered(has_gpus=bool(hardware.get("gpus"))) if node.discovery else {}), **node.labels},
        taints=tuple(Taint(key=taint.key, value=taint.value, effect=taint.effect) for taint in node.taints),
        cpu=str(node.cpu),
        memory=str(node.memory),
    )
    return ScenarioNode(spec=spec, hardware=hardware)


def _hardware_of(node: _Node) -> dict[str, Any]:
    given = {"driver": node.driver, "gpus": node.gpus}
    return {key: value for key, value in given.items() if value is not None}


def _discovered(*, has_gpus: bool) -> dict[str, str]:
    """Labels as node feature discovery sets them on such a machine."""
    kernel = NodeSpec(name="").kernel
    major, minor, rest = kernel.split(".", 2)
    labels = {
        f"{names.PREFIX_NFD}cpu-hardware_multithreading": "true",
        f"{names.PREFIX_NFD}cpu-model.vendor_id": "Intel",
        f"{names.PREFIX_NFD}kernel-version.full": kernel,
        f"{names.PREFIX_NFD}kernel-version.major": major,
        f"{names.PREFIX_NFD}kernel-version.minor": minor,
        f"{names.PREFIX_NFD}kernel-version.revision": rest.partition("-")[0],
        f"{names.PREFIX_NFD}memory-numa": "true",
        f"{names.PREFIX_NFD}system-os_release.ID": "ubuntu",
        f"{names.PREFIX_NFD}system-os_release.VERSION_ID": "24.04",
        f"{names.PREFIX_NFD}system-os_release.VERSION_ID.major": "24",
        f"{names.PREFIX_NFD}system-os_release.VERSION_ID.minor": "04",
    }
    if has_gpus:
        labels |= {names.LABELS_NFD_GPU[0]: "true", f"{names.PREFIX_NFD}pci-10de.sriov.capable": "true"}
    return labels


def _twice(nodes: Iterable[_Node]) -> Iterator[Problem]:
    first: dict[str, int] = {}
    for position, node in enumerate(nodes):
        if node.name in first:
            path = f"nodes[{position}].name"
            yield Problem(
                path=path, message=f'"{node.name}" is the name of nodes[{first[node.name]}] too; choose another'
            )
        first.setdefault(node.name, position)


def _hardware_problems(nodes: Iterable[_Node]) -> Iterator[Problem]:
    for position, node in enumerate(nodes):
        if hardware := _hardware_of(node):
            try:
                SimulatedNvml.from_mapping(hardware)
            except ConfigurationError as error:
                for problem in error.problems:
                    path = f"nodes[{position}]{'.' if problem.path else ''}{problem.path}"
                    yield Problem(path=path, message=problem.message)


def _located(problems: Iterable[Problem], document: Document) -> tuple[Problem, ...]:
    """The same problems with the lines where they stand, in the order of the text."""
    return _in_order(
        Problem(path=problem.path, message=problem.message, line=document.line_of(_location_of(problem.path)))
        for problem in problems
    )


def _in_order(problems: Iterable[Problem]) -> tuple[Problem, ...]:
    return tuple(sorted(problems, key=lambda problem: (problem.line or 0, problem.path)))


def _location_of(path: str) -> tuple[str | int, ...]:
    parts = re.findall(r"\[(\d+)\]|([^.\[\]]+)", path)
    return tuple(int(number) if number else key for number, key in parts)


def _problems_of(error: ValidationError, document: Document) -> tuple[Problem, ...]:
    # A wrong key of a mapping is told with a last part `[key]`, which is no place in the text.
    found = {
        tuple(part for part in detail["loc"] if part != "[key]"): _message_of(detail)
        for detail in error.errors(include_url=False)
    }
    return _in_order(
        Problem(path=path_of(place), message=message, line=document.line_of(place)) for place, message in found.items()
    )


def _message_of(detail: Any) -> str:
    kind, value = detail["type"], detail["input"]
    if kind == "extra_forbidden":
        return _unknown_key(str(detail["loc"][-1]), tuple(detail["loc"][:-1]))
    if kind == "value_error":
        return str(detail["ctx"]["error"])
    if kind == "literal_error":
        return f"must be one of NoSchedule, PreferNoSchedule, NoExecute, not {_shown(value)}"
    if kind in _ABSENCES:
        return _ABSENCES[kind]
    return f"{_MESSAGES.get(kind, 'cannot be used')}, not {_shown(value)}"


_MESSAGES = {
    "string_type": "must be text (put it in quotes)",
    "bool_type": "must be true or false",
    "dict_type": "must hold keys, indented below it",
    "model_type": "must hold keys, indented below it",
    "list_type": 'must be a list, each item after a "-"',
}
_ABSENCES = {"missing": "is missing", "too_short": "must have at least one node; write `- name: gpu01`"}


def _unknown_key(key: str, place: tuple[str | int, ...]) -> str:
    models: tuple[type[BaseModel], ...] = (_File, _Node, _Taint)
    known = tuple(models[sum(isinstance(part, int) for part in place)].model_fields)
    close = difflib.get_close_matches(key, known, 1)
    return f'unknown key; did you mean "{close[0]}"?' if close else f"unknown key; known here: {', '.join(known)}"


def _shown(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str):
        return f'"{value[:40]}"'
    if isinstance(value, int | float):
        return str(value)
    return "a list" if isinstance(value, list) else "keys" if isinstance(value, dict) else "empty"
