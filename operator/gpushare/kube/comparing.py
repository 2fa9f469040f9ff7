"""Whether a live object already holds what we want of it. Pure; called by `applying`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gpushare.domain.manifests import Manifest

_OF_THE_SERVER = ("managedFields", "resourceVersion", "generation")


def holds(live: Any, wanted: Any) -> bool:
    """Whether every value of `wanted` is in `live`. What `live` has besides, defaults and other writers put there.

    Lists are compared item by item and must be equally long: a list that lost or gained an item is not as we want it. What
    the server writes in another way than we did (a quantity in its short form) counts as different; the caller finds
    out by applying once.
    """
    if isinstance(wanted, Mapping):
        return isinstance(live, Mapping) and all(
            key in live and holds(live[key], value) for key, value in wanted.items() if value is not None
        )
    if isinstance(wanted, list):
        return isinstance(live, list) and len(live) == len(wanted) and all(map(holds, live, wanted))
    return bool(live == wanted) and isinstance(live, bool) == isinstance(wanted, bool)


def essence_of(manifest: Manifest) -> Manifest:
    """An object without its status and without what the server counts in it: equal while nothing of ours can differ."""
    metadata = {key: value for key, value in manifest.get("metadata", {}).items() if key not in _OF_THE_SERVER}
    return {key: value for key, value in manifest.items() if key != "status"} | {"metadata": metadata}
