"""Where the API server is and who we are: from a pod's service account, or from a kubeconfig file.

Called by the processes before they make a client. The only module of `kube` that reads files.
"""

from __future__ import annotations

import base64
import binascii
import ssl
import tempfile
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from gpushare.errors import UsageError

_SERVICE_ACCOUNT = "var/run/secrets/kubernetes.io/serviceaccount"
_TOKEN_SECONDS = 60.0
"""How long a token that was read from a file is believed. The kubelet writes a new one at 80 % of its life (an hour)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Credentials:
    """Address, trust and identity for one API server."""

    server: str
    """`https://host:port`, maybe with a path."""
    ca: str = ""
    """PEM; empty: what the system trusts."""
    token: str = field(default="", repr=False)
    token_file: Path | None = None
    """Read again and again, since the kubelet replaces what is in it; beats `token`."""
    client_certificate: str = ""
    """PEM."""
    client_key: str = field(default="", repr=False)
    server_name: str = ""
    """Name that the server's certificate must bear; empty: the host of `server`."""
    insecure: bool = False
    """Do not verify the server's certificate."""
    namespace: str = ""
    """Namespace of the kubeconfig's context or of the pod."""


def in_cluster(root: Path, environ: Mapping[str, str]) -> Credentials:
    """What the kubelet gives to a pod, below the host root `root`.

    Raises:
        UsageError: this is no pod, or one without a service account token.
    """
    host, port = environ.get("KUBERNETES_SERVICE_HOST", ""), environ.get("KUBERNETES_SERVICE_PORT", "")
    if not host or not port:
        raise UsageError(
            "KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT are not set: this is no pod; use --kubeconfig"
        )
    folder = root / _SERVICE_ACCOUNT
    namespace = folder / "namespace"
    return Credentials(
        server=f"https://[{host}]:{port}" if ":" in host else f"https://{host}:{port}",
        ca=_read(folder / "ca.crt"),
        token_file=folder / "token",
        namespace=_read(namespace).strip() if namespace.exists() else "",
    )


def from_kubeconfig(path: Path, context: str = "") -> Credentials:
    """The named context of a kubeconfig file; without a name, the current one.

    Raises:
        UsageError: the file cannot be read or used; says what in it.
    """
    import yaml  # late: a pod has no kubeconfig

    try:
        config = yaml.safe_load(_read(path))
    except yaml.YAMLError as error:
        raise UsageError(f"{path}: no YAML: {error}") from error
    if not isinstance(config, dict):
        raise UsageError(f"{path}: no kubeconfig: expected a mapping with clusters, users and contexts")
    reader = _Kubeconfig(path, config)
    return reader.credentials(context or str(config.get("current-context") or ""))


class TokenReader:
    """The bearer token of the next request. One a client, since it remembers what it has read."""

    def __init__(self, credentials: Credentials) -> None:
        self._file = credentials.token_file
        self._token = credentials.token
        self._read_at = float("-inf")

    def read(self, *, anew: bool = False) -> str:
        """The token, empty without one. `anew`: the server refused the last one, so look at the file at once."""
        if self._file is not None and (anew or time.monotonic() - self._read_at > _TOKEN_SECONDS):
            try:
                self._token = self._file.read_text().strip()
            except OSError:
                # Between two versions of a projected volume; the one we have is good for a while.
                return self._token
            self._read_at = time.monotonic()
        return self._token


def tls_context(credentials: Credentials) -> ssl.SSLContext | None:
    """What a connection verifies and shows; None where the server speaks plain HTTP.

    Raises:
        UsageError: certificate or key is no PEM, or they do not belong together.
    """
    if not credentials.server.startswith("https://"):
        return None
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    try:
        if credentials.insecure:
            context.check_hostname = False
            context.verify_mode = ssl.CERT_NONE
        elif credentials.ca:
            context.load_verify_locations(cadata=credentials.ca)
        else:
            context.load_default_certs()
        if credentials.client_certificate:
            _load_identity(context, credentials)
    except (ssl.SSLError, ValueError) as error:
        raise UsageError(f"certificates for {credentials.server}: {error}") from error
    return context


def _load_identity(context: ssl.SSLContext, credentials: Credentials) -> None:
    # The ssl module takes a client certificate from a file only; mkstemp's files are readable by their owner alone.
    with tempfile.NamedTemporaryFile("w", suffix=".pem") as file:
        file.write(f"{credentials.client_certificate}\n{credentials.client_key}")
        file.flush()
        context.load_cert_chain(file.name)


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "is no text"
        raise UsageError(f"{path}: {reason}") from error


class _Kubeconfig:
    """One kubeconfig; finds things by name and names the place of what is missing."""

    def __init__(self, path: Path, config: Mapping[str, Any]) -> None:
        self._path = path
        self._config = config

    def credentials(self, context: str) -> Credentials:
        if not context:
            raise UsageError(f"{self._path}: no current-context")
        chosen = self._entry("contexts", "context", context)
        cluster = self._entry("clusters", "cluster", str(chosen.get("cluster", "")))
        user = self._entry("users", "user", str(chosen["user"])) if chosen.get("user") else {}
        for unsupported in ("exec", "auth-provider"):
            if user.get(unsupported):
                raise UsageError(
                    f"{self._path}: user {chosen['user']!r} logs in through {unsupported!r}, which is not supported; "
                    "use a token (kubectl create token) or a client certificate"
                )
        if not cluster.get("server"):
            raise UsageError(f"{self._path}: cluster {chosen.get('cluster')!r} has no server")
        token_file = user.get("tokenFile")
        return Credentials(
            server=str(cluster["server"]).rstrip("/"),
            ca=self._pem(cluster, "certificate-authority"),
            token=str(user.get("token") or ""),
            token_file=self._path.parent / token_file if token_file else None,
            client_certificate=self._pem(user, "client-certificate"),
            client_key=self._pem(user, "client-key"),
            server_name=str(cluster.get("tls-server-name") or ""),
            insecure=bool(cluster.get("insecure-skip-tls-verify")),
            namespace=str(chosen.get("namespace") or ""),
        )

    def _entry(self, section: str, key: str, name: str) -> Mapping[str, Any]:
        for entry in self._config.get(section) or ():
            if isinstance(entry, dict) and entry.get("name") == name:
                return entry.get(key) or {}
        raise UsageError(f"{self._path}: {section} has no {name!r}")

    def _pem(self, entry: Mapping[str, Any], key: str) -> str:
        """Inline data, which wins as in kubectl, or the file that is named; relative to the kubeconfig."""
        if data := entry.get(f"{key}-data"):
            try:
                return base64.b64decode(data, validate=True).decode()
            except (binascii.Error, UnicodeDecodeError, TypeError) as error:
                raise UsageError(f"{self._path}: {key}-data is no base64: {error}") from error
        return _read(self._path.parent / str(entry[key])) if entry.get(key) else ""
