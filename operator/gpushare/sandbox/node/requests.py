"""What pods ask of a node, and whether it has that much. Pure; called at admission, after the scheduler has decided.

The kubelet looks again, since the scheduler may have worked with an older picture of the node.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from fractions import Fraction
from math import ceil
from typing import Any

from gpushare.domain.manifests import Manifest
from gpushare.sandbox.apiserver.objects import quantities

Amounts = dict[str, Fraction]
_CHECKED = ("cpu", "memory", "ephemeral-storage")


def containers_of(pod: Manifest) -> Iterator[tuple[dict[str, Any], bool]]:
    """All containers in the order in which they start, and whether what each holds is free again when the next starts."""
    for container in pod["spec"].get("initContainers") or ():
        yield container, container.get("restartPolicy") != "Always"
    for container in pod["spec"]["containers"]:
        yield container, False


def limits_of(container: Mapping[str, Any]) -> dict[str, int]:
    """Limits of extended resources, whose requests are always the same."""
    limits = (container.get("resources") or {}).get("limits") or {}
    return {name: quantities.parse_int(amount) for name, amount in limits.items() if "/" in name}


def requests_of(pod: Manifest) -> Amounts:
    """What a pod takes of its node: all its containers together, or its largest init container."""
    together: Amounts = {}
    for container in pod["spec"]["containers"]:
        for name, amount in _requests(container).items():
            together[name] = together.get(name, Fraction()) + amount
    for container in pod["spec"].get("initContainers") or ():
        for name, amount in _requests(container).items():
            together[name] = max(together.get(name, Fraction()), amount)
    return together


def _requests(container: Mapping[str, Any]) -> Amounts:
    resources = container.get("resources") or {}
    listed = {**(resources.get("limits") or {}), **(resources.get("requests") or {})}
    return {name: quantities.parse(amount) for name, amount in listed.items()}


def find_shortage(
    pod: Manifest, others: Iterable[Manifest], allocatable: Mapping[str, str], exempt: Iterable[str]
) -> tuple[str, str] | None:
    """Reason and message where the node cannot hold the pod beside the others; None where it can.

    `exempt` are resources that the device manager has judged already. Extended resources that the node does not have at
    all are let through, as by a kubelet: somebody else may provide them.
    """
    others = tuple(others)
    if len(others) + 1 > int(allocatable["pods"]):
        return _shortage("pods", Fraction(1), Fraction(len(others)), Fraction(allocatable["pods"]))
    judged = set(exempt)
    used: Amounts = {}
    for other in others:
        for name, amount in requests_of(other).items():
            used[name] = used.get(name, Fraction()) + amount
    for name, wanted in requests_of(pod).items():
        if name in judged or not (name in _CHECKED or ("/" in name and name in allocatable)):
            continue
        taken, offered = used.get(name, Fraction()), quantities.parse(allocatable[name])
        if wanted and taken + wanted > offered:
            return _shortage(name, wanted, taken, offered)
    return None


def _shortage(name: str, wanted: Fraction, used: Fraction, capacity: Fraction) -> tuple[str, str]:
    # CPU is counted in thousandths, everything else in whole numbers.
    unit = 1000 if name == "cpu" else 1
    figures = f"requested: {ceil(wanted * unit)}, used: {ceil(used * unit)}, capacity: {ceil(capacity * unit)}"
    return f"OutOf{name}", f"Node didn't have enough resource: {name}, {figures}"
