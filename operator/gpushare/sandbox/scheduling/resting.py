"""When pods that extenders have refused are asked about again: not at every change, or each change would cost a call a pod.

As in a real scheduler: after 1, 2, 4, 8 and 10 seconds; one that does not fit, once something has changed besides.
"""

from __future__ import annotations

import math
import time
from dataclasses import dataclass

from gpushare.domain.manifests import Manifest

_FIRST_SECONDS = 1.0
_LAST_SECONDS = 10.0


@dataclass(slots=True)
class _Rest:
    until: float
    pause: float
    due: bool
    """Whether it is tried at its time without any change."""


class Resting:
    """The pods that rest."""

    def __init__(self) -> None:
        self._rests: dict[str, _Rest] = {}

    def put(self, pod: Manifest, *, due: bool) -> None:
        """The pod was tried in vain. `due`: something was broken, which may be whole by itself the next time."""
        uid, now = pod["metadata"]["uid"], time.monotonic()
        before = self._rests.get(uid)
        pause = min(before.pause * 2, _LAST_SECONDS) if before else _FIRST_SECONDS
        self._rests[uid] = _Rest(now + pause, pause, due)

    def rests(self, pod: Manifest) -> bool:
        """Whether the pod is not to be tried now."""
        rest = self._rests.get(pod["metadata"]["uid"])
        return rest is not None and (not rest.due or time.monotonic() < rest.until)

    def wake(self) -> None:
        """Something changed: whoever did not fit is tried again, at its time."""
        for rest in self._rests.values():
            rest.due = True

    def forget(self, uid: str) -> None:
        """The pod is bound or gone."""
        self._rests.pop(uid, None)

    def seconds_until_due(self) -> float:
        """Until the next one may be tried; infinite when none waits for its time."""
        until = min((rest.until for rest in self._rests.values() if rest.due), default=math.inf)
        return max(0.0, until - time.monotonic())
