"""Annotations by which a pod says where it may run and what to prefer. Named and written as in HAMi, for both dialects."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from gpushare import names
from gpushare.domain.fractions import Isolation, Placement
from gpushare.errors import Problem
from gpushare.placement.shapes import Constraints, Policy, Weights

_TRUE: Final = frozenset({"1", "t", "true"})
_FALSE: Final = frozenset({"", "0", "f", "false"})
_WEIGHTS: Final = re.compile(r"(slot|core|memory)=([0-9]{1,6})\Z")


class AnnotationReader:
    """Reads the annotations of one pod, and collects what is wrong with them."""

    def __init__(self, annotations: Mapping[str, str]) -> None:
        self._annotations = annotations
        self.problems: list[Problem] = []

    def read_constraints(self) -> Constraints:
        """Which GPUs the pod may get."""
        return Constraints(
            use_models=self._read_list(names.ANNOTATION_USE_TYPE, lower=True),
            avoid_models=self._read_list(names.ANNOTATION_AVOID_TYPE, lower=True),
            use_uuids=self._read_list(names.ANNOTATION_USE_UUID),
            avoid_uuids=self._read_list(names.ANNOTATION_AVOID_UUID),
            numa_bind=self._read_flag(names.ANNOTATION_NUMA_BIND),
            tier=self._read_tier(),
        )

    def read_node_policy(self, default: Placement) -> Placement:
        """Whether nodes that are fuller or emptier come first."""
        text = self._annotations.get(names.ANNOTATION_NODE_POLICY, "").strip()
        if not text:
            return default
        try:
            return Placement(text)
        except ValueError:
            self._refuse(names.ANNOTATION_NODE_POLICY, f'"{text}" is no policy; write binpack or spread')
            return default

    def read_gpu_policy(self) -> tuple[Policy, ...]:
        """The words for GPUs, in their order; none: as the node does it."""
        words = self._read_list(names.ANNOTATION_GPU_POLICY)
        known = [word.value for word in Policy]
        unknown = [word for word in words if word not in known]
        if unknown:
            message = f'"{unknown[0]}" is no policy; write one or more of {", ".join(known)}'
            self._refuse(names.ANNOTATION_GPU_POLICY, message)
            return ()
        return tuple(dict.fromkeys(map(Policy, words)))

    def read_weights(self) -> Weights:
        """What counts how much: `slot=1,core=1,memory=3`."""
        parts = self._read_list(names.ANNOTATION_WEIGHTS)
        if not parts:
            return Weights()
        found = [match for match in map(_WEIGHTS.match, parts) if match]
        values = {match[1]: int(match[2]) for match in found}
        if len(parts) != 3 or len(values) != 3 or not any(values.values()):
            message = "write slot=A,core=B,memory=C with whole numbers, one of them above 0"
            self._refuse(names.ANNOTATION_WEIGHTS, message)
            return Weights()
        return Weights(**values)

    def _read_tier(self) -> str:
        text = self._annotations.get(names.ANNOTATION_TIER, "").strip()
        tiers = [tier.value for tier in Isolation]
        if text and not any(tier in text for tier in tiers):
            self._refuse(names.ANNOTATION_TIER, f'"{text}" names no isolation; write one of {", ".join(tiers)}')
            return ""
        return text

    def _read_list(self, name: str, *, lower: bool = False) -> tuple[str, ...]:
        text = self._annotations.get(name, "")
        parts = (part.strip() for part in (text.lower() if lower else text).split(","))
        return tuple(sorted({*filter(None, parts)})) if lower else tuple(filter(None, parts))

    def _read_flag(self, name: str) -> bool:
        text = self._annotations.get(name, "").strip().lower()
        if text not in _TRUE | _FALSE:
            self._refuse(name, f'"{text}" is neither true nor false')
        return text in _TRUE

    def _refuse(self, name: str, message: str) -> None:
        self.problems.append(Problem(path=f"metadata.annotations[{name}]", message=message))
