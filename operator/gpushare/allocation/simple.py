"""The policy that looks at no link: the lowest indices. For machines whose GPUs are all equally far from each other."""

from __future__ import annotations

from collections.abc import Sequence

from gpushare.allocation.policies import read_request
from gpushare.allocation.topology import Topology


class Simple:
    """Same answers as go-gpuallocator's simple policy, order included."""

    def choose(
        self, topology: Topology, available: Sequence[int], required: Sequence[int], size: int
    ) -> tuple[int, ...]:
        """Those that are required in the order given, then the lowest others."""
        request = read_request(topology, available, required, size)
        if request is None:
            return ()
        others = [gpu for gpu in request.free if gpu not in request.required]
        return (*request.required, *others)[:size]
