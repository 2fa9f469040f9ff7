"""What pods ask for and nodes offer, as whole numbers. Pure. Used by the filters and scores of the scheduler."""

from __future__ import annotations

from collections.abc import Mapping
from math import ceil
from typing import Any, Final, TypeAlias

from gpushare.domain.manifests import Manifest
from gpushare.sandbox.apiserver.objects import quantities

Amounts: TypeAlias = dict[str, int]
"""By resource name: cpu in thousandths of a core, everything else in its own unit, `pods` counted."""

CPU: Final = "cpu"
MEMORY: Final = "memory"
PODS: Final = "pods"
_FINISHED: Final = ("Succeeded", "Failed")


def requested(pod: Manifest) -> Amounts:
    """What a pod takes from its node: its containers together, or its hungriest init container where that is more."""
    spec = pod["spec"]
    running: Amounts = {}
    for container in spec["containers"]:
        add(running, _requests(container))
    starting: Amounts = {}
    sidecars: Amounts = {}
    for container in spec.get("initContainers") or []:
        if container.get("restartPolicy") == "Always":
            add(sidecars, _requests(container))
            _raise_to(starting, sidecars)
        else:
            _raise_to(starting, _sum(sidecars, _requests(container)))
    add(running, sidecars)
    _raise_to(running, starting)
    add(running, _read(spec.get("overhead") or {}))
    running[PODS] = 1
    return running


def allocatable(node: Manifest) -> Amounts:
    """What a node offers to pods."""
    return _read(node.get("status", {}).get("allocatable") or {})


def is_counted(pod: Manifest) -> bool:
    """Whether a pod still takes from its node: until it has ended, however long it takes to go."""
    return pod.get("status", {}).get("phase") not in _FINISHED


def add(total: Amounts, more: Mapping[str, int]) -> None:
    """Adds `more` to `total` in place."""
    for name, amount in more.items():
        total[name] = total.get(name, 0) + amount


def _requests(container: Mapping[str, Any]) -> Amounts:
    return _read((container.get("resources") or {}).get("requests") or {})


def _read(resources: Mapping[str, quantities.Text]) -> Amounts:
    return {name: _amount(name, text) for name, text in resources.items()}


def _amount(name: str, text: quantities.Text) -> int:
    # Thousandths only where they mean something: a GPU is a GPU.
    return ceil(quantities.parse(text) * 1000) if name == CPU else quantities.parse_int(text)


def _sum(*parts: Amounts) -> Amounts:
    total: Amounts = {}
    for part in parts:
        add(total, part)
    return total


def _raise_to(total: Amounts, least: Mapping[str, int]) -> None:
    for name, amount in least.items():
        total[name] = max(total.get(name, 0), amount)
