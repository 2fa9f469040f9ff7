"""Asking the API server what we may do. Made by `running`, used by `syncing`; what is needed is in `plan.permissions`."""

from __future__ import annotations

import logging
from collections.abc import Iterable

from gpushare.domain import manifests
from gpushare.domain.manifests import Manifest
from gpushare.errors import GpuShareError
from gpushare.kube.cluster import Cluster
from gpushare.plan import permissions


class Permissions:
    """Compares what the controller may do with what its roles grant."""

    def __init__(self, cluster: Cluster, namespace: str, roles: Iterable[Manifest], log: logging.Logger) -> None:
        """`roles`: as they are installed with the controller."""
        self._cluster = cluster
        self._namespace = namespace
        self._needed = frozenset().union(*map(permissions.rights_of, roles))
        self._log = log
        self._told = ""
        self.unspeakable = ""
        """Those of the missing rights that cannot be told on a policy, for people."""

    async def describe_missing(self) -> str:
        """Which rights are missing, for people. Empty where none is, and where the API server does not tell.

        One request: it grants nothing and stores nothing.
        """
        kind = manifests.SELF_SUBJECT_RULES_REVIEW
        question: Manifest = {
            "apiVersion": kind.api_version,
            "kind": kind.kind,
            "metadata": {},
            "spec": {"namespace": self._namespace},
        }
        try:
            status = (await self._cluster.create(question)).get("status") or {}
        except GpuShareError as error:
            self._log.debug("rights not known", extra={"reason": str(error)})
            return ""
        if status.get("incomplete"):
            # An authorizer that cannot list what it allows, such as a webhook: what is refused will be told when it is.
            return ""
        missing = permissions.find_missing(self._needed, status.get("resourceRules") or ())
        text = permissions.describe(missing, self._namespace)
        self.unspeakable = permissions.describe(filter(permissions.is_unspeakable, missing), self._namespace)
        if text != self._told:
            self._told = text
            self._log.log(logging.WARNING if text else logging.INFO, "rights", extra={"missing": text or "none"})
        return text
