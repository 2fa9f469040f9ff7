"""What kopf calls for each event of a watch. Every kind does the same: read the object, pass it on.

What to do about it is decided in `plan`. Called by `operating`, in the thread of the watches.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import kopf

from gpushare.controller.snapshotting import WATCHED, Sighting, Watched, sighting_of
from gpushare.plan.snapshot import Settings

See = Callable[[Sighting, bool], None]
"""Takes what was seen, and whether it is gone."""


def register(registry: kopf.OperatorRegistry, settings: Settings, see: See) -> None:
    """One handler a kind. Only `on.event`: kopf then keeps nothing in the objects that it watches."""
    for watched in WATCHED:
        _register(registry, watched, settings, see)


def _register(registry: kopf.OperatorRegistry, watched: Watched, settings: Settings, see: See) -> None:
    kind = watched.kind

    @kopf.on.event(kind.group, kind.version, kind.plural, id=kind.plural, registry=registry)
    async def seen(event: kopf.RawEvent, **_: Any) -> None:
        # Returns None: kopf would patch a returned value into the object. The raw object rather than `body`, which
        # wraps each access.
        manifest: Any = event["object"]
        sighting = sighting_of(watched, {"apiVersion": kind.api_version, "kind": kind.kind, **manifest}, settings)
        see(sighting, event["type"] == "DELETED")
