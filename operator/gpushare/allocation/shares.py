"""Which shares, or MIG instances, a request gets: by how much of their device is in use. Called by `preferring`.

The device that is less used comes first (distributed), or the more used one (packed), as in NVIDIA's device plugin; devices that
are used alike take turns within one request. Where that decides nothing, it goes by how much of the whole GPU is in use, which
tells MIG instances apart, then by how close the GPU is to those that the request has so far, then by index.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from gpushare.allocation.topology import Topology
from gpushare.domain.pools import Allocation, Pool, Share


class Usage:
    """How much of each device and GPU is in use, while one request is answered."""

    def __init__(
        self,
        held: Iterable[Share],
        ghosts: Mapping[int, int],
        allocation: Allocation,
        topology: Topology | None = None,
    ) -> None:
        """`held` is in use before the request. So are `ghosts`, by index of the GPU: held, but no longer in the pool."""
        self._sign = -1 if allocation is Allocation.PACKED else 1
        self._is_distinct = allocation is Allocation.DISTINCT
        self._topology = topology
        self._ghosts = ghosts
        # Plain dicts: a Counter takes its time over everything that it has not counted yet.
        self._devices: dict[str, int] = {}
        self._gpus: dict[int, int] = {}
        self._taken: dict[str, int] = {}
        """How much of each device the request has so far."""
        self._turns: dict[int, int] = {}
        """How much of each GPU the request has so far."""
        for share in held:
            self._add(share)

    def take(self, share: Share) -> None:
        """Counts one more as in use."""
        device, gpu = share.id.device, share.gpu_index
        self._add(share)
        self._taken[device] = self._taken.get(device, 0) + 1
        self._turns[gpu] = self._turns.get(gpu, 0) + 1

    def rank(self, share: Share) -> tuple[int, ...]:
        """The share of the lowest rank is to be taken next."""
        gpu, device, sign = share.gpu_index, share.id.device, self._sign
        ghosts, distance = self._ghosts.get(gpu, 0), 0
        if self._topology is not None:
            for other in self._turns:
                distance -= self._topology.score(gpu, other)
        return (
            sign * (self._devices.get(device, 0) + ghosts),
            self._taken.get(device, 0),
            self._turns.get(gpu, 0) if self._is_distinct else 0,
            sign * (self._gpus.get(gpu, 0) + ghosts),
            distance,
        )

    def _add(self, share: Share) -> None:
        device, gpu = share.id.device, share.gpu_index
        self._devices[device] = self._devices.get(device, 0) + 1
        self._gpus[gpu] = self._gpus.get(gpu, 0) + 1


def pick(pool: Pool, free: Iterable[Share], required: Sequence[Share], size: int, usage: Usage) -> tuple[Share, ...]:
    """The required shares, then the best of the free ones; empty where not enough of them may go together.

    What is still equal goes in the order of `free`.
    """
    is_distinct = pool.allocation is Allocation.DISTINCT
    held = {share.id.device for share in required}
    if is_distinct and len(held) < len(required):
        return ()
    left: dict[str, list[Share]] = {}
    for share in free:
        if not (is_distinct and share.id.device in held):
            left.setdefault(share.id.device, []).append(share)
    for share in required:
        usage.take(share)
    picked = list(required)
    while len(picked) < size and left:
        best = min([shares[0] for shares in left.values()], key=usage.rank)
        usage.take(best)
        picked.append(best)
        device = best.id.device
        del left[device][0]
        if is_distinct or not left[device]:
            del left[device]
    return tuple(picked) if len(picked) == size else ()
