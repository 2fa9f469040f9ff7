"""What counts as equal between an answer of ours and a recorded one. Used by the conformance tests.

Device nodes and mounts are sets; comma lists too; any name does after the prefix of a CDI annotation. A choice of devices is
as good as another when they are as close to each other, or as evenly spread, or as densely stacked.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from functools import cache
from typing import Any

from gpushare.allocation.topology import Topology
from gpushare.domain.pools import Allocation, Pool
from gpushare.nvml.reading import read_inventory
from gpushare.sharing.responses import ContainerAnswer
from support.described_nodes import build_nvml


def shape_of(answer: ContainerAnswer) -> dict[str, Any]:
    """The answer in the form of the recorded ones."""
    return {
        "envs": answer.envs,
        "mounts": [
            {"container_path": mount.container_path, "host_path": mount.host_path, "read_only": mount.read_only}
            for mount in answer.mounts
        ],
        "devices": [
            {"container_path": node.container_path, "host_path": node.host_path, "permissions": node.permissions}
            for node in answer.devices
        ],
        "annotations": answer.annotations,
        "cdi_devices": answer.cdi_devices,
    }


def comparable(answer: Mapping[str, Any]) -> dict[str, Any]:
    """What is left of an answer when what may differ is taken away."""
    return {
        "envs": {name: sorted(value.split(",")) for name, value in answer.get("envs", {}).items()},
        "mounts": sorted({tuple(mount.items()) for mount in answer.get("mounts", [])}),
        "devices": sorted({tuple(node.items()) for node in answer.get("devices", [])}),
        "annotations": {
            key.rpartition("_")[0]: sorted(value.split(",")) for key, value in answer.get("annotations", {}).items()
        },
        "cdi_devices": sorted(answer.get("cdi_devices", [])),
    }


def comparable_documents(value: Any, ignored: Collection[str] = (), *, ordered: bool = False) -> Any:
    """CDI specifications with their lists in an order of their own, but for the arguments of hooks, without ignored keys."""
    if isinstance(value, Mapping):
        return {
            key: comparable_documents(item, ignored, ordered=key == "args")
            for key, item in value.items()
            if key not in ignored
        }
    if isinstance(value, list):
        items = [comparable_documents(item, ignored) for item in value]
        return items if ordered else sorted(items, key=lambda item: json.dumps(item, sort_keys=True))
    return value


def is_as_good(node: str, pool: Pool, question: Mapping[str, Any], chosen: Sequence[str]) -> bool:
    """Whether a choice is valid, and no worse than any recorded one; where nothing was recorded, it is empty."""
    answers = [variant["response"] for variant in question.get("variants") or [question] if variant.get("response")]
    if not answers:
        return not chosen
    if len(set(chosen)) != question["size"] or len(chosen) != question["size"]:
        return False
    if not set(question["must_include"]) <= set(chosen) <= set(question["available"]):
        return False
    if is_whole(pool):
        return closeness(node, pool, chosen) >= max(closeness(node, pool, answer) for answer in answers)
    return unevenness(pool, question["available"], chosen) <= min(
        unevenness(pool, question["available"], answer) for answer in answers
    )


def is_whole(pool: Pool) -> bool:
    return all(share.id.number is None and share.mig_index is None for share in pool.shares)


def closeness(node: str, pool: Pool, chosen: Sequence[str]) -> int:
    """The sum of the pair scores by which whole GPUs are compared: PCI tree and NVLinks."""
    return topology_of(node).score_of_set(pool.by_id[share_id].gpu_index for share_id in chosen)


@cache
def topology_of(node: str) -> Topology:
    """How close the GPUs of a described node are to each other."""
    return Topology.of(read_inventory(build_nvml(node)))


def unevenness(pool: Pool, available: Sequence[str], chosen: Sequence[str]) -> int:
    """How unevenly devices are used afterwards, counted as for the pool's policy: less is better."""
    in_use = Counter(share.id.device for share in pool.shares)
    in_use.subtract(pool.by_id[share_id].id.device for share_id in available)
    in_use.update(pool.by_id[share_id].id.device for share_id in chosen)
    squares = sum(used * used for used in in_use.values())
    return -squares if pool.allocation is Allocation.PACKED else squares
