"""Quotas of namespaces, and what is left of them. Kept up by `following`; asked by admission, filter and bind."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from collections.abc import Set as AbstractSet

from gpushare.domain.manifests import Manifest
from gpushare.placement.quotas import FREE, UNLIMITED, Charge, Quota, read_quota
from gpushare.placement.settings import RequestSettings


class Limits:
    """The ResourceQuotas of all namespaces that limit memory or compute of GPUs."""

    def __init__(self, settings: RequestSettings, charges: Mapping[str, Charge]) -> None:
        """`charges`: what the pods of each namespace take, as the books count it."""
        self._settings = settings
        self._charges = charges
        self._objects: defaultdict[str, dict[str, Manifest]] = defaultdict(dict)
        self._quotas: dict[str, Quota] = {}

    def drop_others(self, existing: AbstractSet[str]) -> None:
        """Only these exist, by namespace and name."""
        for namespace, objects in tuple(self._objects.items()):
            for name, quota in tuple(objects.items()):
                if f"{namespace}/{name}" not in existing:
                    self.see(quota, True)

    def see(self, quota: Manifest, gone: bool) -> None:  # noqa: FBT001 - the shape of a watch's changes
        """Takes one that has changed or gone."""
        name, namespace = quota["metadata"]["name"], quota["metadata"]["namespace"]
        objects = self._objects[namespace]
        if gone:
            objects.pop(name, None)
            if not objects:
                del self._objects[namespace]
        else:
            objects[name] = quota
        allowed = read_quota(objects.values(), self._settings)
        if allowed == UNLIMITED:
            self._quotas.pop(namespace, None)
        else:
            self._quotas[namespace] = allowed

    def room(self, namespace: str, *, without: Charge = FREE) -> Quota:
        """What is left for one pod more, `without` being what it was charged with by an earlier decision."""
        allowed = self._quotas.get(namespace)
        if allowed is None:
            return UNLIMITED
        used = self._charges.get(namespace, FREE)
        return allowed.less(Charge(used.memory_mib - without.memory_mib, used.cores - without.cores))

    def all(self) -> Mapping[str, tuple[Quota, Charge]]:
        """Namespaces that have a quota, with what they use of it."""
        return {name: (quota, self._charges.get(name, FREE)) for name, quota in self._quotas.items()}
