"""The order in which objects are applied: what others need comes first. Called by the controller and the sandbox."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from gpushare.domain import manifests
from gpushare.domain.manifests import Manifest

_ORDER: Final = (
    manifests.NAMESPACE,
    manifests.CUSTOM_RESOURCE_DEFINITION,
    manifests.RUNTIME_CLASS,
    manifests.SERVICE_ACCOUNT,
    manifests.CLUSTER_ROLE,
    manifests.ROLE,
    manifests.CLUSTER_ROLE_BINDING,
    manifests.ROLE_BINDING,
    manifests.CONFIG_MAP,
    manifests.SERVICE,
    manifests.SERVICE_MONITOR,
    manifests.DAEMON_SET,
    manifests.DEPLOYMENT,
)
_RANK: Final = {kind: rank for rank, kind in enumerate(_ORDER)}


def in_order(objects: Iterable[Manifest]) -> list[Manifest]:
    """Sorts for application: accounts and rights before whatever runs with them. Within one kind, the given order stays."""
    return sorted(objects, key=lambda manifest: _RANK.get(manifests.kind_of(manifest), len(_RANK)))
