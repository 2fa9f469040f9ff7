"""When certificate and authority are due, and what takes their place. Called by `tls` at each look, which keeps them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from gpushare.serving import certificates
from gpushare.serving.certificates import YEAR, Authority, Facts, Pair

AUTHORITY_LIFE: Final = 10 * YEAR
LIFE: Final = timedelta(days=90)
_REMAINING: Final = 1 / 3
"""What is left of a life when it is renewed: a month of a certificate, three years of an authority."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Kept:
    """What the Secret holds."""

    serving: Pair
    trusted: str
    """Certificates of authorities (PEM): the present one, then those before it that have not run out."""
    authority_key: str = ""


def renew(kept: Kept | None, owner: str, hosts: Iterable[str], now: datetime) -> Kept:
    """What is to be kept from now on: the same where nothing is due.

    A new authority joins those before it, so that nobody who trusts them turns away what they have issued. Hosts are only
    added: replicas of two versions, of which one needs more of them, do not renew each other's certificates for ever.
    """
    authority = _authority_of(kept)
    if kept is not None and authority is not None and not _is_due(_facts(authority.pem), now):
        facts = _facts(kept.serving.certificate)
        before = facts.hosts if facts else frozenset()
        if authority.has_issued(kept.serving.certificate) and not _is_due(facts, now) and before >= {*hosts}:
            return kept
        trusted, hosts = kept.trusted, {*hosts, *before}
    else:
        authority = Authority.create(f"{owner} authority", life=AUTHORITY_LIFE, now=now)
        trusted = "".join([authority.pem, *(_not_run_out(kept.trusted, now) if kept else ())])
    serving = authority.issue(owner, sorted(hosts), life=LIFE, now=now)
    return Kept(serving=serving, trusted=trusted, authority_key=authority.pair.key)


def _is_due(facts: Facts | None, now: datetime) -> bool:
    return facts is None or facts.ends - now < _REMAINING * (facts.ends - facts.begins)


def _facts(certificate: str) -> Facts | None:
    try:
        return certificates.read_facts(certificate)
    except ValueError:
        return None


def _authority_of(kept: Kept | None) -> Authority | None:
    try:
        return Authority.load(Pair(kept.trusted, kept.authority_key)) if kept else None
    except (ValueError, TypeError):
        return None


def _not_run_out(trusted: str, now: datetime) -> list[str]:
    try:
        return [each for each in certificates.split(trusted) if certificates.read_facts(each).ends > now]
    except ValueError:
        return []
