"""The objects of a cache by who controls them. Used by the workload controllers.

Kept up with each change: a controller with many pods among those of others looks at its own only.
"""

from __future__ import annotations

from collections import defaultdict

from gpushare.domain.manifests import Manifest
from gpushare.sandbox.loops import caches, owners
from gpushare.sandbox.loops.caches import Cache, Key

_NOBODY = ""


class Children:
    """Keys by the uid of the controlling owner; the objects are those of the cache."""

    def __init__(self, cache: Cache) -> None:
        """Made before the cache has anything in it."""
        self.cache = cache
        self._keys: defaultdict[str, dict[Key, None]] = defaultdict(dict)
        cache.listen(self._see)

    def of(self, owner: Manifest) -> list[Manifest]:
        """What `owner` controls, this very one and not another of its name."""
        return self._at(owner["metadata"]["uid"])

    def count(self, owner: Manifest | None) -> int:
        """How much `owner` controls."""
        return len(self._keys.get(owner["metadata"]["uid"], ())) if owner is not None else 0

    def candidates(self, owner: Manifest) -> list[Manifest]:
        """What `owner` controls, and what nobody does, in its namespace."""
        namespace = owner["metadata"]["namespace"]
        found = self.of(owner) + self._at(_NOBODY)
        return [child for child in found if child["metadata"].get("namespace") == namespace]

    def _at(self, uid: str) -> list[Manifest]:
        found = map(self.cache.get, self._keys.get(uid, ()))
        return [child for child in found if child is not None]

    def _see(self, before: Manifest | None, after: Manifest | None) -> None:
        was, now = _controller_uid(before), _controller_uid(after)
        if before is not None and was is not None and was != now:
            del self._keys[was][caches.key_of(before)]
            if not self._keys[was]:
                del self._keys[was]
        if after is not None and now is not None:
            self._keys[now][caches.key_of(after)] = None


def _controller_uid(manifest: Manifest | None) -> str | None:
    """None for no object."""
    if manifest is None:
        return None
    reference = owners.controller_of(manifest)
    return str(reference["uid"]) if reference is not None else _NOBODY
