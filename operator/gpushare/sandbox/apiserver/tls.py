"""The server's own certificate authority, its certificate, and kubeconfigs that trust it."""

from __future__ import annotations

import base64
import ipaddress
import ssl
import tempfile
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

_LIFE = timedelta(days=365)


@dataclass(frozen=True, slots=True)
class Authority:
    """A certificate authority that lives as long as the process does."""

    key: ec.EllipticCurvePrivateKey
    certificate: x509.Certificate

    @classmethod
    def create(cls, name: str) -> Authority:
        """A new authority with a new key."""
        key = ec.generate_private_key(ec.SECP256R1())
        subject = _name(name)
        builder = _builder(subject, subject, key.public_key()).add_extension(
            x509.BasicConstraints(ca=True, path_length=None), critical=True
        )
        # Python 3.13 and later refuse authorities without the two following extensions.
        builder = builder.add_extension(
            x509.KeyUsage(
                digital_signature=True, content_commitment=False, key_encipherment=False, data_encipherment=False,
                key_agreement=False, key_cert_sign=True, crl_sign=True, encipher_only=False, decipher_only=False,
            ),
            critical=True,
        )  # fmt: skip
        builder = builder.add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        return cls(key, builder.sign(key, hashes.SHA256()))

    @property
    def pem(self) -> str:
        """The certificate that clients trust."""
        return self.certificate.public_bytes(serialization.Encoding.PEM).decode()

    def server_context(self, name: str, hosts: Iterable[str], addresses: Iterable[str]) -> ssl.SSLContext:
        """A TLS context with a new certificate of this authority, for these host names and IP addresses."""
        certificate, key = self.issue(name, hosts, addresses)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        # ssl reads certificates from files only; the file is gone before this returns.
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder, "server.pem")
            file.write_text(certificate + key)
            context.load_cert_chain(file)
        return context

    def issue(self, name: str, hosts: Iterable[str], addresses: Iterable[str]) -> tuple[str, str]:
        """A new server certificate and its key, both as PEM."""
        key = ec.generate_private_key(ec.SECP256R1())
        names: list[x509.GeneralName] = [x509.DNSName(host) for host in hosts]
        names += [x509.IPAddress(ipaddress.ip_address(address)) for address in addresses]
        builder = (
            _builder(_name(name), self.certificate.subject, key.public_key())
            .add_extension(x509.SubjectAlternativeName(names), critical=False)
            .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
            .add_extension(
                x509.AuthorityKeyIdentifier.from_issuer_public_key(self.key.public_key()),
                critical=False,
            )
        )
        certificate = builder.sign(self.key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM)
        private = key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )
        return certificate.decode(), private.decode()


def build_kubeconfig(*, server: str, ca_pem: str, user: str, token: str, namespace: str = "") -> dict[str, Any]:
    """A kubeconfig with one context, ready to be written as YAML."""
    name = "sandbox"
    cluster = {"server": server, "certificate-authority-data": base64.b64encode(ca_pem.encode()).decode()}
    context = {"cluster": name, "user": user, **({"namespace": namespace} if namespace else {})}
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": name, "cluster": cluster}],
        "users": [{"name": user, "user": {"token": token}}],
        "contexts": [{"name": name, "context": context}],
        "current-context": name,
    }


def _name(text: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, text)])


def _builder(subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePublicKey) -> x509.CertificateBuilder:
    now = datetime.now(UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(hours=1))
        .not_valid_after(now + _LIFE)
    )
