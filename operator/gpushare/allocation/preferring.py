"""Which devices of a pool a container should get. Called by the plugin server for GetPreferredAllocation.

Whole GPUs by the best-effort policy, so that those which work together are close to each other; shares and MIG instances by
how much of their device is in use. An answer is a hint: the kubelet may choose otherwise.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from gpushare.allocation.best_effort import BestEffort
from gpushare.allocation.shares import Usage, pick
from gpushare.allocation.topology import Topology
from gpushare.domain.pools import Pool, Share

_BEST_EFFORT: Final = BestEffort()
_NOBODY: Final[Mapping[int, int]] = {}


def choose(
    pool: Pool,
    available: Sequence[str],
    must_include: Sequence[str],
    size: int,
    *,
    topology: Topology | None = None,
    ghosts: Mapping[int, int] = _NOBODY,
) -> tuple[str, ...]:
    """Picks `size` of the available ids, those of `must_include` first. Never raises; the same question, the same answer.

    Ids that the pool does not have, or that are sick, are not available, whatever the kubelet believes. `ghosts` tells, by index
    of the GPU, how many ids are held that no pool has any longer: the kubelet takes such a GPU for free, and gets it last.

    Empty where the request cannot be met: too few left, a must-include that is not available, or not enough different devices
    where the pool wants them.
    """
    asked = frozenset(available)
    required: dict[str, Share | None] = dict.fromkeys(must_include)
    free: list[Share] = []
    held: list[Share] = []
    # In the pool's order, whatever that of the question.
    for share_id, share in pool.by_id.items():
        if not share.healthy:
            continue
        if share_id not in asked:
            held.append(share)
        elif share_id in required:
            required[share_id] = share
        else:
            free.append(share)
    must = [share for share in required.values() if share is not None]
    if size < 1 or len(must) < len(required) or not len(must) <= size <= len(must) + len(free):
        return ()
    if all(share.id.number is None and share.mig_index is None for share in (*must, *free)):
        chosen = _choose_gpus(must, free, size, topology, ghosts)
    else:
        chosen = pick(pool, free, must, size, Usage(held, ghosts, pool.allocation, topology))
    return tuple(str(share.id) for share in chosen)


def _choose_gpus(
    must: Sequence[Share], free: Sequence[Share], size: int, topology: Topology | None, ghosts: Mapping[int, int]
) -> Sequence[Share]:
    """The required GPUs, then others in order of index; of those that are held, no more than it takes."""
    wanted = size - len(must)
    if not wanted:
        return must
    ordered = sorted(free, key=lambda share: ghosts.get(share.gpu_index, 0))
    most = ghosts.get(ordered[wanted - 1].gpu_index, 0)
    # All that are held less than the last one of these are needed; there is a choice among those that are held as much.
    needed = [share.gpu_index for share in must]
    needed += [share.gpu_index for share in ordered if ghosts.get(share.gpu_index, 0) < most]
    by_index = {share.gpu_index: share for share in ordered if ghosts.get(share.gpu_index, 0) <= most}
    chosen = _BEST_EFFORT.choose(topology, [*needed, *by_index], needed, size) if topology is not None else ()
    if not chosen:
        # Nobody knows the links yet, or not of these GPUs.
        return [*must, *ordered[:wanted]]
    return [*must, *(by_index[index] for index in chosen if index in by_index)]
