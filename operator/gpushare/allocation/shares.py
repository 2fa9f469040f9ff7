"""Which shares, or MIG instances, a request gets: by how much of their device is in use. Called by `preferring`.

The device that is less used comes first (distributed), or the more used one (packed), as in NVIDIA's device plugin; devices that
are used alike take turns within one request. Where that decides nothing, it goes by how much of the whole GPU is in use, which
tells MIG instances apart, then by how close the GPU is to those that the request has so far, then by index.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from gpushare.allocation.topology import Topology
from gpushare.domain.pools import Allocation, Pool, Share


class Usage:
    """How much of each device and GPU is in use, while one request is answered."""

    def __init__(
        self, pool: Pool, free: Iterable[Share], ghosts: Mapping[int, int], topology: Topology | None = None
    ) -> None:
        """What is healthy and not free is in use. So are `ghosts`, by index of the GPU: held, but no longer in the pool."""
        self._sign = -1 if pool.allocation is Allocation.PACKED else 1
        self._topology = topology
        self._ghosts = ghosts
        healthy = [share for share in pool.shares if share.healthy]
        self._devices = Counter(share.id.device for share in healthy)
        self._gpus = Counter(share.gpu_index for share in healthy)
        for share in free:
            self._devices[share.id.device] -= 1
            self._gpus[share.gpu_index] -= 1
        self._taken: Counter[str] = Counter()
        self._is_distinct = pool.allocation is Allocation.DISTINCT
        self._turns: Counter[int] = Counter()
        """How much of each GPU the request has so far."""

    def take(self, share: Share) -> None:
        """Counts one more as in use."""
        self._devices[share.id.device] += 1
        self._gpus[share.gpu_index] += 1
        self._taken[share.id.device] += 1
        self._turns[share.gpu_index] += 1

    def rank(self, share: Share) -> tuple[int, ...]:
        """The share of the lowest rank is to be taken next."""
        gpu, topology = share.gpu_index, self._topology
        ghosts = self._ghosts.get(gpu, 0)
        return (
            self._sign * (self._devices[share.id.device] + ghosts),
            self._taken[share.id.device],
            self._turns[gpu] if self._is_distinct else 0,
            self._sign * (self._gpus[gpu] + ghosts),
            -sum(topology.score(gpu, other) for other in self._turns) if topology is not None else 0,
        )


def pick(pool: Pool, free: Iterable[Share], required: Sequence[Share], size: int, usage: Usage) -> tuple[Share, ...]:
    """The required shares, then the best of the free ones; empty where not enough of them may go together."""
    is_distinct = pool.allocation is Allocation.DISTINCT
    held = {share.id.device for share in required}
    if is_distinct and len(held) < len(required):
        return ()
    left: dict[str, list[Share]] = {}
    for share in sorted(free, key=place_of):
        if not (is_distinct and share.id.device in held):
            left.setdefault(share.id.device, []).append(share)
    for share in required:
        usage.take(share)
    picked = list(required)
    while len(picked) < size and left:
        # What is still equal goes by place: dicts keep the order in which the shares were sorted.
        device = min(left, key=lambda device: usage.rank(left[device][0]))
        picked.append(left[device].pop(0))
        usage.take(picked[-1])
        if is_distinct or not left[device]:
            del left[device]
    return tuple(picked) if len(picked) == size else ()


def place_of(share: Share) -> tuple[int, int, int]:
    """By GPU, MIG instance and number, whatever the ids are."""
    number = share.id.number if share.id.number is not None else -1
    return share.gpu_index, share.mig_index if share.mig_index is not None else -1, number
