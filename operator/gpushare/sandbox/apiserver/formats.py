"""String formats that CustomResourceDefinitions may ask for. Unknown ones let everything through, as on a real server."""

from __future__ import annotations

import base64
import binascii
import ipaddress
import re
from collections.abc import Callable, Mapping
from datetime import date, datetime
from typing import Any, Final

_UUID = re.compile(r"(?i)[0-9a-f]{8}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{12}")
_MAC = re.compile(r"(?i)([0-9a-f]{2}[:-]){5}[0-9a-f]{2}")
_EMAIL = re.compile(r"[^@\s]+@[^@\s]+")
_URI = re.compile(r"([a-zA-Z][a-zA-Z0-9+.-]*:|/)\S*")
_HOST_NAME = re.compile(
    r"(?!.{256})([a-zA-Z0-9]([a-zA-Z0-9-]{0,61}[a-zA-Z0-9])?)(\.[a-zA-Z0-9]([a-zA-Z0-9-]{0,61}[a-zA-Z0-9])?)*"
)
_DURATION = re.compile(r"[+-]?(\d+(\.\d*)?|\.\d+)(ns|us|µs|ms|s|m|h)((\d+(\.\d*)?|\.\d+)(ns|us|µs|ms|s|m|h))*|0")
_DATE_TIME = re.compile(r"(\d{4}-\d{2}-\d{2})[Tt](\d{2}:\d{2}:\d{2})(\.\d+)?([Zz]|[+-]\d{2}:\d{2})")


def matches(text: str, name: str) -> bool:
    """Whether a text has a format."""
    check = _CHECKS.get(name.replace("-", ""))
    return check is None or check(text)


def _parses(parse: Callable[[str], Any]) -> Callable[[str], bool]:
    def check(text: str) -> bool:
        try:
            parse(text)
        except (ValueError, binascii.Error):
            return False
        return True

    return check


def _full(pattern: re.Pattern[str]) -> Callable[[str], bool]:
    return lambda text: pattern.fullmatch(text) is not None


def _date_time(text: str) -> None:
    match = _DATE_TIME.fullmatch(text)
    if match is None:
        raise ValueError(text)
    datetime.fromisoformat(f"{match[1]}T{match[2]}")


_CHECKS: Final[Mapping[str, Callable[[str], bool]]] = {
    "datetime": _parses(_date_time),
    "date": _parses(date.fromisoformat),
    "duration": _full(_DURATION),
    "byte": _parses(lambda text: base64.b64decode(text, validate=True)),
    "ipv4": _parses(ipaddress.IPv4Address),
    "ipv6": _parses(ipaddress.IPv6Address),
    "cidr": _parses(lambda text: ipaddress.ip_network(text, strict=False)),
    "mac": _full(_MAC),
    "uuid": _full(_UUID),
    "email": _full(_EMAIL),
    "uri": _full(_URI),
    "hostname": _full(_HOST_NAME),
}
