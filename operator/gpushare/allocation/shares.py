"""Which devices of a pool a container should get. Called by the plugin server for GetPreferredAllocation.

Whole GPUs by index, shares by how much of their device is in use. An answer is a hint: the kubelet may choose otherwise.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from gpushare.domain.pools import Allocation, Pool, Share


def choose(pool: Pool, available: Sequence[str], must_include: Sequence[str], size: int) -> tuple[str, ...]:
    """Picks `size` of the available ids, those of `must_include` first. Never raises; the same question, the same answer.

    Ids that the pool no longer has are not available. Empty where the request cannot be met: too few left, a must-include
    that is not available, or not enough different devices for `distinct`.
    """
    free = {share_id: pool.by_id[share_id] for share_id in available if share_id in pool.by_id}
    required = tuple(dict.fromkeys(must_include))
    if size < 1 or len(free) < size or len(required) > size or any(share_id not in free for share_id in required):
        return ()
    ordered = sorted((share for share in free.values() if str(share.id) not in required), key=_place)
    if len(free) == size and pool.allocation is not Allocation.DISTINCT:
        return required + tuple(str(share.id) for share in ordered)
    if not any(share.id.number is not None for share in free.values()):
        return required + tuple(str(share.id) for share in ordered[: size - len(required)])
    return _choose_shares(pool, ordered, required, size)


def _choose_shares(pool: Pool, ordered: Sequence[Share], required: tuple[str, ...], size: int) -> tuple[str, ...]:
    total = Counter(share.id.device for share in pool.shares)
    left: dict[str, list[Share]] = {}
    for share in ordered:
        left.setdefault(share.id.device, []).append(share)
    in_use = {device: total[device] - len(shares) for device, shares in left.items()}
    taken = Counter(pool.by_id[share_id].id.device for share_id in required)
    if pool.allocation is Allocation.DISTINCT:
        if max(taken.values(), default=0) > 1:
            return ()
        left = {device: shares for device, shares in left.items() if not taken[device]}
    sign = -1 if pool.allocation is Allocation.PACKED else 1
    picked = list(required)
    while len(picked) < size and left:
        # Equally used devices take turns within one request. What is then still equal goes by index: dicts keep order.
        device = min(left, key=lambda device: (sign * in_use[device], taken[device]))
        picked.append(str(left[device].pop(0).id))
        in_use[device] += 1
        taken[device] += 1
        if not left[device] or pool.allocation is Allocation.DISTINCT:
            del left[device]
    return tuple(picked) if len(picked) == size else ()


def _place(share: Share) -> tuple[int, int, int]:
    number = share.id.number if share.id.number is not None else -1
    return share.gpu_index, share.mig_index if share.mig_index is not None else -1, number
