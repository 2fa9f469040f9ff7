"""What has to change when pools change. Called by the agent before it touches a running server."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from gpushare.domain.pools import Pool


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolChanges:
    """The difference between what is served and what should be, by resource name."""

    start: Mapping[str, Pool]
    update: Mapping[str, Pool]
    """Same resource, other content: goes through the open stream, nothing is registered again."""
    retire: frozenset[str]
    """Announced empty before they close, or the kubelet would go on showing their last count."""

    @property
    def is_empty(self) -> bool:
        """Whether nothing is to be done."""
        return not (self.start or self.update or self.retire)


def build_changes(served: Mapping[str, Pool], wanted: Mapping[str, Pool]) -> PoolChanges:
    """Compares two sets of pools. A pool that is equal in both appears nowhere in the result."""
    return PoolChanges(
        start={name: pool for name, pool in wanted.items() if name not in served},
        update={name: pool for name, pool in wanted.items() if name in served and served[name] != pool},
        retire=frozenset(served.keys() - wanted.keys()),
    )
