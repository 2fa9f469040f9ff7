"""From an HTTP status and its body to one of our errors. Both clients translate here and nowhere else."""

from __future__ import annotations

import json
from typing import Any

from gpushare.errors import ClusterRefused, ClusterUnavailable, Conflict, Expired, GpuShareError

_LONGEST_MESSAGE = 500
"""Some refusals quote the whole object (several KB); these texts end in conditions and Events."""
_NOT_NOW = frozenset({408, 429, 500, 502, 503, 504})


def status_of(body: bytes) -> dict[str, Any]:
    """The `Status` object in a body, or one that holds the start of whatever text stands there instead."""
    try:
        status = json.loads(body)
    except ValueError:
        status = None
    if isinstance(status, dict) and status.get("kind") == "Status":
        return status
    return {"kind": "Status", "message": body[:_LONGEST_MESSAGE].decode(errors="replace").strip()}


def is_absent(status: dict[str, Any], name: str) -> bool:
    """Whether a 404 says that the object `name` is not there, rather than its kind, its namespace or the path."""
    details = status.get("details") or {}
    return status.get("reason") == "NotFound" and details.get("name") == name


def failure_of(code: int, status: dict[str, Any], attempt: str) -> GpuShareError:
    """The error that stands for a refused request.

    Args:
        code: HTTP status, or the `code` of a Status that came through a watch.
        status: the Status object, as `status_of` gives it.
        attempt: what was being done, for the message: `PATCH /api/v1/nodes/gpu01`.
    """
    text = status.get("message") or status.get("reason") or "no reason given"
    message = f"{attempt}: {text}"
    if len(message) > _LONGEST_MESSAGE:
        message = message[: _LONGEST_MESSAGE - 3] + "..."
    if code == 409:
        return Conflict(message)
    if code == 410:
        return Expired(message)
    if code in _NOT_NOW:
        return ClusterUnavailable(message)
    return ClusterRefused(message, code=code)
