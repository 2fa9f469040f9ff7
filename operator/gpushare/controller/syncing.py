"""What no watch tells: kinds that may be absent, objects that went between two watches, rights. Called by `looping`."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Final

from gpushare.controller import rivals
from gpushare.controller.permissions import Permissions
from gpushare.controller.snapshotting import LISTED, WATCHED, Store
from gpushare.domain import manifests
from gpushare.errors import ClusterRefused, ClusterUnavailable
from gpushare.kube.cluster import Cluster
from gpushare.plan import reading

_WATCH_SECONDS: Final = 5.0
"""How long a watch may take to tell what a list has shown."""
_RIGHTS_SECONDS: Final = 30.0
"""How often missing rights are asked for again: somebody may be installing them."""
_ABSENT: Final = frozenset({403, 404})
"""What the API server answers where there is no such kind, or where we may not see it."""


class Syncing:
    """Brings the store to what the cluster is, besides the watches."""

    def __init__(
        self,
        cluster: Cluster,
        store: Store,
        permissions: Permissions,
        *,
        report_blocked: Callable[[str], Awaitable[None]],
        request: Callable[[float], None],
    ) -> None:
        """`report_blocked` tells people why nothing is done; `request` asks for another resync in so many seconds."""
        self._cluster = cluster
        self._store = store
        self._permissions = permissions
        self._report_blocked = report_blocked
        self._request = request

    async def resync(self) -> None:
        """Raises ClusterRefused, and ClusterUnavailable also where the watches have not told of everything that exists."""
        self._store.missing_rights = await self._permissions.describe_missing()
        if self._store.missing_rights:
            self._request(_RIGHTS_SECONDS)
        try:
            await self._see_all()
            await rivals.look(self._cluster, self._store)
            self._store.pod_security = await self._read_pod_security()
            self._store.service_monitors = await self._see_service_monitors()
        except (ClusterRefused, ClusterUnavailable) as error:
            # Without a right to see something no pass runs, and nobody but us would tell the policy's owner.
            if self._store.missing_rights:
                await self._report_blocked(str(error))
            raise

    async def _see_all(self) -> None:
        namespace = self._store.settings.namespace
        for watched in WATCHED:
            since = self._store.sightings
            place = namespace if watched.kind.namespaced else ""
            existing = await self._cluster.names(watched.kind, place, labels=watched.labels)
            self._store.drop_others(watched.kind, existing, since)
            # Without rights there may be no watch, and nothing to wait for.
            seconds = 1.0 if self._store.missing_rights else _WATCH_SECONDS
            if missing := await self._store.wait_for(watched.kind, existing, seconds=seconds):
                some = ", ".join(sorted(missing)[:3])
                raise ClusterUnavailable(
                    f"the watches have not told of {len(missing)} {watched.kind.plural} yet: {some}"
                )

    async def _read_pod_security(self) -> Mapping[str, str]:
        try:
            namespace = await self._cluster.get(manifests.NAMESPACE, self._store.settings.namespace)
        except ClusterRefused as error:
            # Then no label is known to be ours; should one be wanted, writing it tells which right is missing.
            if error.code in _ABSENT:
                return {}
            raise
        return reading.pod_security_of(namespace) if namespace is not None else {}

    async def _see_service_monitors(self) -> bool:
        namespace, since = self._store.settings.namespace, self._store.sightings
        try:
            found = (await self._cluster.list(LISTED.kind, namespace, labels=LISTED.labels)).items
        except ClusterRefused as error:
            if error.code in _ABSENT:
                # With the kind, its objects are gone.
                self._store.drop_others(LISTED.kind, frozenset(), since)
                return False
            raise
        for manifest in found:
            self._store.see_written(manifest)
        self._store.drop_others(LISTED.kind, frozenset(item["metadata"]["name"] for item in found), since)
        return True
