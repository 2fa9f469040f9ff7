"""The serving certificate of a process, kept by itself: made, shared by its replicas in a Secret, trusted, renewed, loaded.

Run by controller and scheduler. The Secret has the keys of `kubernetes.io/tls`, and `ca.crt` and `ca.key` besides. One that
does not carry our label is somebody else's (cert-manager's): it is only read, and whoever makes it sees to it that it is
trusted.
"""

from __future__ import annotations

import asyncio
import base64
import binascii
import logging
import ssl
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final, Protocol

from gpushare import names
from gpushare.domain import manifests
from gpushare.domain.manifests import Kind, Manifest
from gpushare.errors import ClusterRefused, ClusterUnavailable, Conflict
from gpushare.serving import certificates
from gpushare.serving.certificates import Facts, Pair
from gpushare.serving.metrics import Gauge
from gpushare.serving.renewing import Kept, renew

_CHECK_SECONDS: Final = 10.0
"""How long a caBundle may be wrong that somebody has overwritten, and a certificate that another replica has renewed."""
_RETRY_SECONDS: Final = 1.0
_TLS_TYPE: Final = "kubernetes.io/tls"


class Objects(Protocol):
    """What is needed of a cluster (`kube.cluster.Cluster`)."""

    async def get(self, kind: Kind, name: str, namespace: str = "") -> Manifest | None:
        """One object, or None."""
        ...

    async def create(self, manifest: Manifest) -> Manifest:
        """Creates an object; `Conflict` where it is there."""
        ...

    async def replace(self, manifest: Manifest) -> Manifest:
        """Writes an object; `Conflict` where somebody else was first."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Whose certificate it is, where it is kept, and who must trust it."""

    namespace: str
    secret: str
    owner: str
    """Name of the program: stands in the certificate, and in the label of the Secret."""
    hosts: tuple[str, ...]
    """Host names and IP addresses by which clients ask for the server; the same in every replica."""
    webhooks: tuple[tuple[Kind, str], ...] = ()
    """Webhook configurations, by kind and name, that must trust the certificate."""


class ServingCertificate:
    """Keeps one certificate. `context` shows the newest to whoever connects; it stays the same object."""

    def __init__(
        self,
        cluster: Objects,
        place: Place,
        *,
        log: logging.Logger,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self.context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self.trusted = ""
        """PEM of the authorities by which replicas know each other."""
        self._cluster = cluster
        self._place = place
        self._log = log
        self._now = now
        self._loaded: Pair | None = None
        self._facts: Facts | None = None
        self._told = ""

    async def prepare(self) -> None:
        """Returns when there is a certificate to serve with."""
        while True:
            await self._try_once()
            if self._loaded is not None:
                return
            await asyncio.sleep(_RETRY_SECONDS)

    async def run(self) -> None:
        """Renews and loads until cancelled."""
        while True:
            await asyncio.sleep(_CHECK_SECONDS)
            await self._try_once()

    def gauge(self) -> Gauge:
        """When the certificate that is served runs out, for the metrics of the process; 0 before there is one."""
        return Gauge(
            name="gpushare_certificate_expiry_timestamp_seconds",
            help="when the certificate that is served runs out, in seconds since 1970; 0 before there is one",
            value=self._facts.ends.timestamp() if self._facts else 0.0,
        )

    async def check(self) -> None:
        """One pass: renews what is due, has it trusted, loads it. Raises what the cluster raises, and ValueError."""
        found = await self._cluster.get(manifests.SECRET, self._place.secret, self._place.namespace)
        if found is not None and not self._is_ours(found):
            self._load(_read(found))
            return
        kept = renew(_read_ours(found), self._place.owner, self._place.hosts, self._now())
        if found is None:
            await self._cluster.create(self._build(kept, {}))
        elif kept != _read_ours(found):
            await self._cluster.replace(self._build(kept, found))
        # Trusted before it is shown: who asks in between still gets the one before.
        for kind, name in self._place.webhooks:
            await self._trust(kind, name, kept.trusted)
        self._load(kept)

    async def _try_once(self) -> None:
        try:
            await self.check()
        except Conflict:
            # Another replica was first: what it wrote is read at the next look.
            return
        except (ClusterUnavailable, ClusterRefused, ValueError, ssl.SSLError) as error:
            if self._told != str(error):
                self._told = str(error)
                self._log.warning("cannot keep the certificate", extra={"reason": self._told})
        else:
            self._told = ""

    def _load(self, kept: Kept) -> None:
        self.trusted = kept.trusted
        if kept.serving == self._loaded:
            return
        certificates.load_into(self.context, kept.serving)
        self._loaded, self._facts = kept.serving, certificates.read_facts(kept.serving.certificate)
        self._log.info("certificate", extra={"secret": self._place.secret, "expires": self._facts.ends.isoformat()})

    async def _trust(self, kind: Kind, name: str, trusted: str) -> None:
        found = await self._cluster.get(kind, name)
        bundle = _encoded(trusted)
        if found is None or all(_bundle_of(webhook) == bundle for webhook in found.get("webhooks") or ()):
            return
        webhooks = [
            {**webhook, "clientConfig": {**webhook["clientConfig"], "caBundle": bundle}}
            for webhook in found["webhooks"]
        ]
        await self._cluster.replace({**found, "webhooks": webhooks})
        self._log.info(
            "the webhook configuration trusts the certificate", extra={"kind": kind.kind, "configuration": name}
        )

    def _is_ours(self, secret: Manifest) -> bool:
        return (secret["metadata"].get("labels") or {}).get(names.LABEL_CERTIFICATE) == self._place.owner

    def _build(self, kept: Kept, found: Manifest) -> Manifest:
        metadata = {
            "name": self._place.secret,
            "namespace": self._place.namespace,
            "labels": {names.LABEL_CERTIFICATE: self._place.owner},
        }
        data = {
            "tls.crt": kept.serving.certificate,
            "tls.key": kept.serving.key,
            "ca.crt": kept.trusted,
            "ca.key": kept.authority_key,
        }
        return {
            "apiVersion": "v1",
            "kind": "Secret",
            "metadata": found.get("metadata") or metadata,
            "type": found.get("type") or _TLS_TYPE,
            "data": {name: _encoded(text) for name, text in data.items()},
        }


def _read_ours(secret: Manifest | None) -> Kept | None:
    try:
        return _read(secret) if secret else None
    except ValueError:
        return None


def _read(secret: Manifest) -> Kept:
    data: Mapping[str, str] = secret.get("data") or {}
    if not data.get("tls.crt") or not data.get("tls.key"):
        raise ValueError(f"Secret {secret['metadata']['name']} has no tls.crt and tls.key (yet)")
    try:
        texts = {name: base64.b64decode(text).decode() for name, text in data.items()}
    except (binascii.Error, UnicodeDecodeError) as error:
        raise ValueError(f"Secret {secret['metadata']['name']} holds no certificate: {error}") from error
    serving = Pair(texts["tls.crt"], texts["tls.key"])
    return Kept(serving=serving, trusted=texts.get("ca.crt", ""), authority_key=texts.get("ca.key", ""))


def _bundle_of(webhook: Manifest) -> str:
    return str(webhook["clientConfig"].get("caBundle") or "")


def _encoded(text: str) -> str:
    return base64.b64encode(text.encode()).decode()
