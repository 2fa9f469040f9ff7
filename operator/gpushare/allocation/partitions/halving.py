"""Sets that are at least half of all devices: there are only two parts, and each choice of one decides the other.

The total is then what all pairs score less what is cut, so that one list of the smaller part's sets is enough.
"""

from __future__ import annotations

from gpushare.allocation.partitions import subsets
from gpushare.allocation.partitions.values import Partition, build_partition
from gpushare.allocation.topology import Scores


def find_best(scores: Scores, size: int, required: int) -> Partition:
    """The first of the best partitions in which a full set holds all of `required`. For sizes of half of all, or more."""
    count = len(scores)
    everything = (1 << count) - 1
    smaller = min(size, count - size)
    # A part's pairs count twice, less the links of its devices to anywhere: what it gains over being cut.
    doubled = tuple(tuple(2 * score for score in row) for row in scores)
    (gains,) = subsets.list_scores(doubled, [sum(row) for row in scores], (smaller,))
    masks = subsets.masks_of_size(count, smaller)
    if required:
        # The smaller part is the one without them, unless both are full sets.
        allowed = (0,) if smaller < size else (0, required)
        pairs = [(gain, mask) for gain, mask in zip(gains, masks, strict=True) if mask & required in allowed]
    else:
        pairs = list(zip(gains, masks, strict=True))
    best = max(gain for gain, _ in pairs)
    # The first partition is the one whose first device's part is the greatest number.
    first = max(max(mask, everything ^ mask) for gain, mask in pairs if gain == best)
    return build_partition(scores, (first, everything ^ first), size, required)
