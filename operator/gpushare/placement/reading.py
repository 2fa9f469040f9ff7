"""Amounts of a container's resources, read one by one, and what is wrong with them. Used by both dialects."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from gpushare.domain.amounts import AmountError, parse_whole
from gpushare.domain.manifests import Manifest
from gpushare.errors import Problem
from gpushare.placement.shapes import Kind, kinds_of


@dataclass(slots=True)
class Findings:
    """What is wrong with a pod, and what is odd, while it is being read."""

    problems: list[Problem] = field(default_factory=list)
    warnings: list[Problem] = field(default_factory=list)


class ContainerReader:
    """One container of a pod. Limits count; what is only requested counts where there is no limit."""

    def __init__(self, body: Mapping[str, Any], path: str, kind: Kind, findings: Findings) -> None:
        resources = body.get("resources") or {}
        self._limits = resources.get("limits") or {}
        self._requests = resources.get("requests") or {}
        self._path = path
        self._findings = findings
        self.name = str(body.get("name", ""))
        self.kind = kind

    @property
    def resources(self) -> Iterable[str]:
        """All that the container names, GPUs or not."""
        return dict.fromkeys((*self._limits, *self._requests))

    def has(self, resource: str) -> bool:
        """Whether the container names a resource."""
        return bool(resource) and (resource in self._limits or resource in self._requests)

    def read(self, resource: str, unit: str = "") -> int | None:
        """The amount of a resource; None where it is not named, or where it is wrong, which then is a problem."""
        if not self.has(resource):
            return None
        try:
            return parse_whole(self._limits.get(resource, self._requests.get(resource)), unit)
        except AmountError as error:
            self.refuse(resource, str(error))
            return None

    def refuse(self, resource: str, message: str) -> None:
        """What keeps the pod from running."""
        self._findings.problems.append(Problem(path=self._place(resource), message=message))

    def warn(self, resource: str, message: str) -> None:
        """What is taken otherwise than its writer may think."""
        self._findings.warnings.append(Problem(path=self._place(resource), message=message))

    def _place(self, resource: str) -> str:
        group = "limits" if resource in self._limits or resource not in self._requests else "requests"
        return f"{self._path}.resources.{group}[{resource}]"


def read_containers(pod: Manifest, findings: Findings) -> Iterator[ContainerReader]:
    """The containers of a pod, in the order in which the kubelet allocates."""
    kinds = kinds_of(pod)
    spec = pod.get("spec") or {}
    for group in ("initContainers", "containers"):
        for index, body in enumerate(spec.get(group) or ()):
            yield ContainerReader(body, f"spec.{group}[{index}]", kinds[body.get("name", "")], findings)
