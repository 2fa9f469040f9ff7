"""What the kubelet is answered. One for all plugin servers of an agent; called in their threads."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from gpushare.allocation import shares
from gpushare.domain.pools import Pool
from gpushare.kubelet.values import PreferenceRequest
from gpushare.sharing import responses
from gpushare.sharing.responses import ContainerAnswer, ResponseOptions


class Answering:
    """Implements `kubelet.values.Answers` by pure functions; touches no device."""

    def __init__(self, on_allocate: Callable[[], None]) -> None:
        """Calls `on_allocate`, in a thread of the server, after each container that was granted something."""
        self.options = ResponseOptions()
        """Replaced as a whole when the configuration changes; a request in flight goes on with the old one."""
        self._on_allocate = on_allocate

    def allocate(self, pool: Pool, ids: Sequence[str]) -> ContainerAnswer:
        """See `kubelet.values.Answers`. Raises RequestRefused in the words of NVIDIA's device plugin."""
        answer = responses.build_response(pool, ids, self.options)
        self._on_allocate()
        return answer

    def prefer(self, pool: Pool, request: PreferenceRequest) -> Sequence[str]:
        """See `kubelet.values.Answers`. Empty where nothing fits, which leaves the choice to the kubelet."""
        return shares.choose(pool, request.available, request.must_include, request.size)
