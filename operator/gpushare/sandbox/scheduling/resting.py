"""When pods that extenders have refused are asked about again: not at every change, or each change would cost a call a pod.

As in a real scheduler: after 1, 2, 4, 8 and 10 seconds; one that does not fit, once something has changed besides, and
after five minutes whatever happens, since extenders go by more than the scheduler sees.
"""

from __future__ import annotations

import math
import time
from dataclasses import dataclass

from gpushare.domain.manifests import Manifest

_FIRST_SECONDS = 1.0
_LAST_SECONDS = 10.0
_LEFTOVER_SECONDS = 300.0


@dataclass(slots=True)
class _Rest:
    begun: float
    pause: float
    due: bool
    """Whether it is tried after its pause without any change."""

    @property
    def until(self) -> float:
        return self.begun + (self.pause if self.due else _LEFTOVER_SECONDS)


class Resting:
    """The pods that rest."""

    def __init__(self) -> None:
        self._rests: dict[str, _Rest] = {}
        self.changes = 0
        """Grows with each change that could help somebody."""

    def put(self, pod: Manifest, *, due: bool) -> None:
        """The pod was tried in vain. `due`: something was broken, or has changed meanwhile: it may go well the next time."""
        uid = pod["metadata"]["uid"]
        before = self._rests.get(uid)
        pause = min(before.pause * 2, _LAST_SECONDS) if before else _FIRST_SECONDS
        self._rests[uid] = _Rest(time.monotonic(), pause, due)

    def rests(self, pod: Manifest) -> bool:
        """Whether the pod is not to be tried now."""
        rest = self._rests.get(pod["metadata"]["uid"])
        return rest is not None and time.monotonic() < rest.until

    def wake(self) -> None:
        """Something changed: whoever did not fit is tried again, after its pause."""
        self.changes += 1
        for rest in self._rests.values():
            rest.due = True

    def forget(self, uid: str) -> None:
        """The pod is bound or gone."""
        self._rests.pop(uid, None)

    def seconds_until_due(self) -> float:
        """Until the next one may be tried; infinite when none rests."""
        until = min((rest.until for rest in self._rests.values()), default=math.inf)
        return max(0.0, until - time.monotonic())
