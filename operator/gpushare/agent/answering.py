"""What the kubelet is answered. One for all plugin servers of an agent; called in their threads."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from gpushare.domain.pools import Pool
from gpushare.kubelet.values import PreferenceRequest
from gpushare.sharing import responses
from gpushare.sharing.responses import ContainerAnswer, RequestRefused, ResponseOptions

if TYPE_CHECKING:
    from gpushare.agent.fractions.answering import FractionAnswers
    from gpushare.allocation.topology import Topology

MOST_REMEMBERED: Final = 4096


@dataclass(frozen=True, slots=True)
class _Answered:
    """Answers that follow from one pool and one set of options."""

    pool: Pool
    options: ResponseOptions
    answers: dict[tuple[str, ...], ContainerAnswer] = field(default_factory=dict)


class Answering:
    """Implements `kubelet.values.Answers` by pure functions; touches no device.

    A node gives out the same few shares again and again, and an answer depends on nothing but the ids, the pool and the
    options: so it is remembered, and an Allocate costs hardly more than gRPC itself.
    """

    def __init__(self, on_allocate: Callable[[], None]) -> None:
        """Calls `on_allocate`, in a thread of the server, after each container that was granted something."""
        self.options = ResponseOptions()
        """Replaced as a whole when the configuration changes; a request in flight goes on with the old one."""
        self.ghosts: Mapping[int, int] = {}
        """Ids in use that are no longer offered, by index of their GPU; replaced as a whole."""
        self.fractions: FractionAnswers | None = None
        """Answers for pools of fractions; None: nobody here can know what was decided."""
        self.topology: Topology | None = None
        """How close GPUs are to each other; replaced as a whole. None: nobody knows yet."""
        self._on_allocate = on_allocate
        self._answered: dict[str, _Answered] = {}

    def allocate(self, pool: Pool, ids: Sequence[str]) -> ContainerAnswer:
        """See `kubelet.values.Answers`. Raises RequestRefused in the words of NVIDIA's device plugin."""
        if pool.fractions is not None:
            found = self._need_fractions().allocate(pool, tuple(ids), self.options)
            self._on_allocate()
            return found
        known = self._known(pool, self.options)
        key = tuple(ids)
        answer = known.answers.get(key)
        if answer is None:
            answer = responses.build_response(pool, key, known.options)
            if len(known.answers) < MOST_REMEMBERED:
                known.answers[key] = answer
        self._on_allocate()
        return answer

    def prefer(self, pool: Pool, request: PreferenceRequest) -> Sequence[str]:
        """See `kubelet.values.Answers`. Empty where nothing fits, which leaves the choice to the kubelet."""
        if pool.fractions is not None:
            return self._need_fractions().prefer(pool, request)
        from gpushare.allocation import preferring  # late: nobody asks before the first list is out

        available, must_include, size = request.available, request.must_include, request.size
        return preferring.choose(pool, available, must_include, size, topology=self.topology, ghosts=self.ghosts)

    def _need_fractions(self) -> FractionAnswers:
        if self.fractions is None:
            raise RequestRefused(
                "this agent cannot ask a cluster what its scheduler has decided, so it gives out no fraction"
            )
        return self.fractions

    def _known(self, pool: Pool, options: ResponseOptions) -> _Answered:
        known = self._answered.get(pool.resource)
        # By identity: comparing pools share by share would cost more than the answer.
        if known is None or known.pool is not pool or known.options is not options:
            known = self._answered[pool.resource] = _Answered(pool, options)
        return known
