"""Certificate authorities of our own, and the server certificates that they issue. Used by `tls`, and by servers of the sandbox.

The only module that knows the library which makes them.
"""

from __future__ import annotations

import ipaddress
import os
import ssl
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Final

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

YEAR: Final = timedelta(days=365)
_CLOCK_DIFFERENCE: Final = timedelta(hours=1)
"""Certificates hold from a little before they are made: not all clocks of a cluster agree."""
_PRIVATE = (serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())


@dataclass(frozen=True, slots=True)
class Pair:
    """A certificate and its key, both as PEM."""

    certificate: str
    key: str


@dataclass(frozen=True, slots=True)
class Facts:
    """What a certificate says of itself."""

    hosts: frozenset[str]
    """Host names and IP addresses that it is for."""
    begins: datetime
    ends: datetime


@dataclass(frozen=True, slots=True)
class Authority:
    """A certificate authority."""

    key: ec.EllipticCurvePrivateKey
    certificate: x509.Certificate

    @classmethod
    def create(cls, name: str, *, life: timedelta = YEAR, now: datetime | None = None) -> Authority:
        """A new authority with a new key."""
        key = ec.generate_private_key(ec.SECP256R1())
        subject = _name(name)
        builder = _builder(subject, subject, key.public_key(), life, now).add_extension(
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

    @classmethod
    def load(cls, pair: Pair) -> Authority:
        """The authority of a certificate and a key that were kept. Raises ValueError where they are none."""
        key = serialization.load_pem_private_key(pair.key.encode(), password=None)
        certificate = x509.load_pem_x509_certificate(pair.certificate.encode())
        if not isinstance(key, ec.EllipticCurvePrivateKey) or key.public_key() != certificate.public_key():
            raise ValueError("the key is not that of the certificate")
        return cls(key, certificate)

    @property
    def pem(self) -> str:
        """The certificate that clients trust."""
        return self.certificate.public_bytes(serialization.Encoding.PEM).decode()

    @property
    def pair(self) -> Pair:
        """What `load` reads."""
        return Pair(self.pem, self.key.private_bytes(*_PRIVATE).decode())

    @property
    def ends(self) -> datetime:
        """Until when it is trusted."""
        return self.certificate.not_valid_after_utc

    def has_issued(self, certificate: str) -> bool:
        """Whether a certificate (PEM) is of this authority."""
        try:
            x509.load_pem_x509_certificate(certificate.encode()).verify_directly_issued_by(self.certificate)
        except Exception:  # noqa: BLE001 - the library has an exception for each way in which it is not
            return False
        return True

    def issue(self, name: str, hosts: Iterable[str], *, life: timedelta = YEAR, now: datetime | None = None) -> Pair:
        """A new server certificate for these host names and IP addresses."""
        key = ec.generate_private_key(ec.SECP256R1())
        names = [_general_name(host) for host in hosts]
        builder = (
            _builder(_name(name), self.certificate.subject, key.public_key(), life, now)
            .add_extension(x509.SubjectAlternativeName(names), critical=False)
            .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
            .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(self.key.public_key()), critical=False)
        )
        certificate = builder.sign(self.key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM)
        return Pair(certificate.decode(), key.private_bytes(*_PRIVATE).decode())

    def server_context(self, name: str, hosts: Iterable[str]) -> ssl.SSLContext:
        """A TLS context with a new certificate of this authority."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        load_into(context, self.issue(name, hosts))
        return context


def load_into(context: ssl.SSLContext, pair: Pair) -> None:
    """Has a context show this certificate to whoever connects from now on. Raises `ssl.SSLError`."""
    # ssl reads certificates from files only; this one is in memory, since a container's file system may be read-only.
    with os.fdopen(os.memfd_create("certificate"), "wb", closefd=True) as file:
        file.write((pair.certificate + pair.key).encode())
        file.flush()
        context.load_cert_chain(f"/proc/self/fd/{file.fileno()}")


def read_facts(certificate: str) -> Facts:
    """What a certificate (PEM) says of itself. Raises ValueError where the text is none."""
    found = x509.load_pem_x509_certificate(certificate.encode())
    try:
        names = found.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except x509.ExtensionNotFound:
        hosts: frozenset[str] = frozenset()
    else:
        addresses = map(str, names.get_values_for_type(x509.IPAddress))
        hosts = frozenset((*names.get_values_for_type(x509.DNSName), *addresses))
    return Facts(hosts, found.not_valid_before_utc, found.not_valid_after_utc)


def split(bundle: str) -> list[str]:
    """The certificates (PEM) of a bundle, each as it was issued. Raises ValueError where the text is none."""
    found = x509.load_pem_x509_certificates(bundle.encode())
    return [each.public_bytes(serialization.Encoding.PEM).decode() for each in found]


def _general_name(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(host))
    except ValueError:
        return x509.DNSName(host)


def _name(text: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, text)])


def _builder(
    subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePublicKey, life: timedelta, now: datetime | None
) -> x509.CertificateBuilder:
    now = now or datetime.now(UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - _CLOCK_DIFFERENCE)
        .not_valid_after(now + life)
    )
