"""Which objects have to be looked at again when something changes. Used by every workload controller to wire its caches."""

from __future__ import annotations

from gpushare.domain.manifests import Kind, Manifest
from gpushare.sandbox.apiserver.objects import selectors
from gpushare.sandbox.loops import caches as caching
from gpushare.sandbox.loops import owners
from gpushare.sandbox.loops.caches import Cache
from gpushare.sandbox.loops.children import Children
from gpushare.sandbox.loops.looping import Loop

_QUIET_SECONDS, _QUIET_SECONDS_EACH = 0.01, 0.0005
"""Pods of one owner become ready in bursts; a status for each would only keep everybody busy. The second: for each child,
all of which are looked at every time."""


def route_own(objects: Cache, loop: Loop) -> None:
    """Changes of the objects themselves."""

    def changed(before: Manifest | None, after: Manifest | None) -> None:
        loop.request(caching.key_of(_either(before, after)))

    objects.listen(changed)


def route_children(children: Children, kind: Kind, objects: Cache, loop: Loop) -> None:
    """Changes of what objects of `kind` control, and of orphans that one of them would take."""

    def changed(before: Manifest | None, after: Manifest | None) -> None:
        found = (owners.key_of_controller(child, kind) for child in (before, after) if child is not None)
        for key in {key for key in found if key is not None}:
            if before is not None and after is not None:
                loop.request_after(key, _QUIET_SECONDS + _QUIET_SECONDS_EACH * children.count(objects.get(key)))
            else:
                loop.request(key)  # one has come or gone: what to do about it cannot wait
        if after is not None and owners.is_orphan(after):
            for candidate in objects:
                if is_taker(candidate, after):
                    loop.request(caching.key_of(candidate))

    children.cache.listen(changed)


def is_taker(owner: Manifest, child: Manifest) -> bool:
    """Whether an owner's selector takes an object of its namespace."""
    selector = owner["spec"]["selector"]
    is_near = owner["metadata"]["namespace"] == child["metadata"].get("namespace")
    return is_near and selectors.is_match(selector, selectors.labels_of(child))


def _either(before: Manifest | None, after: Manifest | None) -> Manifest:
    found = after or before
    assert found is not None, "a change shows an object before it, after it, or both"
    return found
