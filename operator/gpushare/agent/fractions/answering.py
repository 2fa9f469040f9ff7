"""Answers to the kubelet about fractions. Called in threads of the plugin servers, which may wait here for the API server.

A pod that the kubelet knows of may have come before our watch has told of it: then the pods of the node are listed anew, and
only what is not among them either is refused.
"""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Final, Protocol

from gpushare import names
from gpushare.agent.fractions.flight import Entry, Flight, count_ids
from gpushare.domain.devices import GPU
from gpushare.domain.fractions import Dialect, FractionMode, Grant
from gpushare.domain.pools import Pool
from gpushare.domain.shares import device_of
from gpushare.kubelet.values import PreferenceRequest
from gpushare.sharing import limits, responses
from gpushare.sharing.limits import LibraryPaths, Part
from gpushare.sharing.responses import ContainerAnswer, RequestRefused, ResponseOptions

PATIENCE_SECONDS: Final = 2.0
"""How long an Allocate waits for the API server; the kubelet lets nothing else in meanwhile."""


class Library(Protocol):
    """What isolates, where HAMi's library does."""

    def prepare(self, ids: Sequence[str]) -> LibraryPaths:
        """Makes ready what one container needs. Raises RequestRefused where the library is missing."""
        ...


class FractionAnswers:
    """What one agent answers while its node gives out fractions."""

    def __init__(
        self,
        mode: FractionMode,
        *,
        refresh: Callable[[], None],
        library: Library | None,
        on_other: Callable[[Entry, Mapping[str, int]], None],
    ) -> None:
        """Both are called in threads of plugin servers.

        Args:
            mode: how the node gives out fractions.
            refresh: asks for the pods to be listed anew.
            library: prepares what isolates; None where HAMi's library does not.
            on_other: the kubelet chose other GPUs for a container than were planned.
        """
        self.mode = mode
        self.gpus: Mapping[str, GPU] = {}
        """By UUID; replaced as a whole."""
        self.trouble = ""
        """Why the pods of the node cannot be listed; empty when they can."""
        self.refusals: Counter[str] = Counter()
        """What was refused to the kubelet, by reason."""
        self._refresh = refresh
        self._library = library
        self._on_other = on_other
        self._flight = Flight(mode)
        self._changed = threading.Condition()
        self._asking = 0
        """Number of the fresh list that the kubelet waits for; 0: it does not wait."""
        self._wanted = 0
        """Number of the last fresh list that was asked for."""
        self._listed = 0

    @contextmanager
    def changing(self, *, listed: int = 0) -> Iterator[Flight]:
        """The pods, to be told of what has changed. `listed`: the number of the fresh list that this is."""
        with self._changed:
            yield self._flight
            self._listed = max(self._listed, listed)
            self._changed.notify_all()

    @property
    def wanted(self) -> int:
        """Number of the fresh list that is wanted now."""
        return self._wanted

    def is_waited_for(self, listed: int) -> bool:
        """Whether the kubelet has waited since before this fresh list was begun. To be asked while `changing`."""
        return 0 < self._asking <= listed

    @property
    def awaits_kubelet(self) -> bool:
        """Whether the kubelet has yet to tell who has got what was answered."""
        return self._flight.awaits_kubelet

    def prefer(self, pool: Pool, request: PreferenceRequest) -> Sequence[str]:
        """The ids of the GPUs that the scheduler decided on, for the container that is next.

        Raises:
            RequestRefused: there is no such container, or a GPU of it is not there any more.
        """
        with self._counting():
            self._refuse_count(pool)
            with self._changed:
                entry = self._find(pool, request.size)[0]
            self._check_gpus(pool, entry)
            return choose_ids(pool, entry.grants, request)

    def allocate(self, pool: Pool, ids: Sequence[str], options: ResponseOptions) -> ContainerAnswer:
        """What one container gets with these ids. They say on which GPUs, the scheduler's decision says how much.

        Raises:
            RequestRefused: the pool does not have an id, no pod waits for so many, or there is no room for what was decided.
        """
        with self._counting():
            return self._allocate(pool, ids, options)

    def _allocate(self, pool: Pool, ids: Sequence[str], options: ResponseOptions) -> ContainerAnswer:
        self._refuse_count(pool)
        base = responses.build_response(pool, ids, options)
        counts = dict(Counter(map(device_of, ids)))
        with self._changed:
            entries = self._find(pool, len(ids))
            entry = next((each for each in entries if count_ids(each.grants) == counts), entries[0])
            grants = limits.grants_of(self.mode, entry.grants, counts)
            if count_ids(entry.grants) != counts:
                self._check_room(entry, grants)
                self._on_other(entry, counts)
            paths = self._library.prepare(ids) if self._library is not None else None
            self._flight.give(entry, ids)
        return _merged(base, limits.build_limits(self.mode, self._parts(pool, grants), _units_of(entry), paths))

    @contextmanager
    def _counting(self) -> Iterator[None]:
        try:
            yield
        except RequestRefused as refusal:
            with self._changed:
                self.refusals[refusal.reason] += 1
            raise

    def _refuse_count(self, pool: Pool) -> None:
        if pool.resource == names.RESOURCE_ALIYUN_COUNT:
            raise RequestRefused(
                f"{pool.resource} only says how many GPUs a node has; ask for {names.RESOURCE_ALIYUN_MEM}, and say by the "
                f"label {pool.resource} of the pod over how many GPUs"
            )

    def _find(self, pool: Pool, size: int) -> tuple[Entry, ...]:
        """Waits for at most one fresh list: what the kubelet asks for, the API server has known before."""
        deadline, wanted = time.monotonic() + PATIENCE_SECONDS, 0
        while True:
            try:
                return self._flight.find(size)
            except RequestRefused as refusal:
                remaining, is_fresh = deadline - time.monotonic(), bool(wanted) and self._listed >= wanted
                if is_fresh or remaining <= 0:
                    trouble = self.trouble or ("" if is_fresh else "the API server does not answer")
                    known = f" (the pods of this node cannot be listed: {trouble})" if trouble else ""
                    text = f'invalid request for "{pool.resource}": {refusal}{known}'
                    raise RequestRefused(text, reason="NoAnswer" if trouble else refusal.reason) from None
            if not wanted:
                self._wanted += 1
                wanted = self._wanted
                self._refresh()
            self._asking = wanted
            self._changed.wait(remaining)
            self._asking = 0

    def _check_gpus(self, pool: Pool, entry: Entry) -> None:
        healthy = {share.id.device for share in pool.shares if share.healthy}
        gone = sorted({grant.uuid for grant in entry.grants} - healthy)
        if gone:
            raise RequestRefused(
                f'invalid request for "{pool.resource}": {entry.title} was given {", ".join(gone)}, which this node '
                "does not have any more, or not in good health; its owner makes another pod",
                reason="GPUGone",
            )

    def _check_room(self, entry: Entry, grants: Sequence[Grant]) -> None:
        """What the kubelet chose otherwise has to fit where it is: nobody has looked for it there."""
        mode = self.mode
        for grant in grants:
            gpu = self.gpus.get(grant.uuid)
            if gpu is None or grant.uuid in count_ids(entry.grants):
                continue
            memory, cores = self._flight.used(grant.uuid)
            room = int(gpu.memory_mib * mode.memory_scaling) - memory
            if mode.dialect is Dialect.HAMI and grant.memory_mib > room:
                raise RequestRefused(
                    f"the kubelet chose GPU {gpu.index} for {entry.title}, where {room} MiB are left "
                    f"of {grant.memory_mib} that it was given elsewhere",
                    reason="NoRoom",
                )
            if grant.cores > 100 * mode.core_scaling - cores:
                raise RequestRefused(
                    f"the kubelet chose GPU {gpu.index} for {entry.title}, where too little of the {grant.cores} % of compute "
                    "is left that it was given elsewhere",
                    reason="NoRoom",
                )

    def _parts(self, pool: Pool, grants: Sequence[Grant]) -> list[Part]:
        units = (
            Counter(share.id.device for share in pool.shares) if self.mode.dialect is Dialect.ALIYUN else Counter[str]()
        )
        return [
            Part(
                grant=grant,
                gpu_index=self.gpus[grant.uuid].index,
                memory_mib=self.gpus[grant.uuid].memory_mib,
                units=units[grant.uuid],
            )
            for grant in grants
        ]


def choose_ids(pool: Pool, grants: Sequence[Grant], request: PreferenceRequest) -> Sequence[str]:
    """Ids of the planned GPUs. Empty, which leaves the choice to the kubelet, where too few of them are free."""
    wanted = Counter(count_ids(grants))
    chosen = [text for text in request.must_include if text in pool.by_id]
    wanted.subtract(Counter(map(device_of, chosen)))
    for text in request.available:
        share = pool.by_id.get(text)
        if len(chosen) == request.size:
            break
        if share is not None and share.healthy and text not in request.must_include and wanted[share.id.device] > 0:
            wanted[share.id.device] -= 1
            chosen.append(text)
    return chosen if len(chosen) == request.size else ()


def _units_of(entry: Entry) -> int:
    """Of the whole pod at its busiest moment: init containers take nothing beside those that come after them."""
    pod = entry.pod
    of_all = pod.decision.containers if pod.decision is not None else {}
    units = {name: sum(grant.units for grant in grants) for name, grants in of_all.items()}
    staying = sum(each for name, each in units.items() if name not in pod.inits)
    return max(staying, *(units[name] for name in units.keys() & pod.inits), 0)


def _merged(base: ContainerAnswer, more: ContainerAnswer) -> ContainerAnswer:
    return ContainerAnswer(
        envs={**base.envs, **more.envs},
        mounts=(*base.mounts, *more.mounts),
        devices=base.devices,
        annotations=base.annotations,
        cdi_devices=base.cdi_devices,
    )
