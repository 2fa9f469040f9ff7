"""What the API server answers when it says no: errors that know their `Status` object, in a real server's words.

Raised by every module of this package, turned into an answer in one place (`api`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

from gpushare.domain.manifests import Manifest

_DECODE_TYPES = "application/json-patch+json, application/merge-patch+json, application/apply-patch+yaml"


class Named(Protocol):
    """The names under which errors speak of a kind; `resources.Resource` is one."""

    @property
    def group(self) -> str:
        """API group, empty for the core group."""

    @property
    def plural(self) -> str:
        """`pods`."""

    @property
    def kind(self) -> str:
        """`Pod`."""


class Kind(NamedTuple):
    """A kind that errors name although no request is about it."""

    group: str
    plural: str
    kind: str


@dataclass(frozen=True, slots=True)
class Cause:
    """One thing that is wrong with an object."""

    reason: str
    """`FieldValueInvalid`, `FieldValueRequired`, `FieldValueForbidden`, ..."""
    field: str
    """Path of the field, as `spec.containers[0].image`."""
    message: str
    """`Invalid value: "x": must be ...`, without the path."""

    def __str__(self) -> str:
        return f"{self.field}: {self.message}"


class ApiError(Exception):
    """A refused request, with all that its `Status` says."""

    def __init__(
        self, code: int, reason: str, message: str, *, details: Mapping[str, Any] | None = None, retry_after: int = 0
    ) -> None:
        super().__init__(message)
        self.code = code
        self.reason = reason
        self.message = message
        self.details = details
        self.retry_after = retry_after
        """Seconds for the `Retry-After` header; 0 for none."""
        self.warnings: Sequence[str] = ()
        """What was warned of before it came to the refusal."""

    def status(self) -> Manifest:
        """The answer's body."""
        status: Manifest = {
            "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure", "message": self.message,
        }  # fmt: skip
        if self.reason:
            status["reason"] = self.reason
        if self.details is not None:
            status["details"] = dict(self.details)
        return {**status, "code": self.code}


def qualified(resource: Named) -> str:
    """`pods`, or `daemonsets.apps`."""
    return f"{resource.plural}.{resource.group}" if resource.group else resource.plural


def details_of(resource: Named, name: str = "") -> dict[str, Any]:
    """The details of errors that name a resource."""
    details: dict[str, Any] = {"name": name} if name else {}
    if resource.group:
        details["group"] = resource.group
    return {**details, "kind": resource.plural}


def success(resource: Named, name: str, uid: str) -> Manifest:
    """The answer to a DELETE that took the object away."""
    return {
        "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success",
        "details": {**details_of(resource, name), "uid": uid},
    }  # fmt: skip


def bad_request(message: str) -> ApiError:
    """400: the request itself makes no sense."""
    return ApiError(400, "BadRequest", message)


def unauthorized() -> ApiError:
    """401: no token, or one that nobody knows."""
    return ApiError(401, "Unauthorized", "Unauthorized")


def forbidden(resource: Named | None, name: str, why: str) -> ApiError:
    """403. Without a resource, about a path."""
    if resource is None:
        return ApiError(403, "Forbidden", f"forbidden: {why}", details={})
    subject = f'{qualified(resource)} "{name}"' if name else qualified(resource)
    return ApiError(403, "Forbidden", f"{subject} is forbidden: {why}", details=details_of(resource, name))


def not_found(resource: Named, name: str) -> ApiError:
    """404: no such object."""
    return ApiError(404, "NotFound", f'{qualified(resource)} "{name}" not found', details=details_of(resource, name))


def no_such_resource() -> ApiError:
    """404: no such kind, version or subresource."""
    return ApiError(404, "NotFound", "the server could not find the requested resource", details={})


def method_not_allowed() -> ApiError:
    """405."""
    return ApiError(
        405, "MethodNotAllowed", "the server does not allow this method on the requested resource", details={}
    )


def not_acceptable() -> ApiError:
    """406: the client wants none of the forms that there are."""
    forms = "application/json, application/yaml, application/vnd.kubernetes.protobuf"
    return ApiError(406, "NotAcceptable", f"406: Not Acceptable\n\nAvailable representations: {forms}", details={})


def already_exists(resource: Named, name: str) -> ApiError:
    """409: create of what is there."""
    message = f'{qualified(resource)} "{name}" already exists'
    return ApiError(409, "AlreadyExists", message, details=details_of(resource, name))


def conflict(resource: Named, name: str, why: str = "") -> ApiError:
    """409: somebody else was first; without a reason, the usual text about a modified object."""
    why = why or "the object has been modified; please apply your changes to the latest version and try again"
    message = f'Operation cannot be fulfilled on {qualified(resource)} "{name}": {why}'
    return ApiError(409, "Conflict", message, details=details_of(resource, name))


def apply_conflict(message: str, causes: Iterable[Cause]) -> ApiError:
    """409 of server-side apply: other managers own fields of the body."""
    return ApiError(409, "Conflict", message, details={"causes": [_cause(cause) for cause in causes]})


def expired(message: str) -> ApiError:
    """410: a version that is no longer known."""
    return ApiError(410, "Expired", message)


def unsupported_patch() -> ApiError:
    """415: a strategic merge patch of a custom resource."""
    message = f"the body of the request was in an unknown format - accepted media types include: {_DECODE_TYPES}"
    return ApiError(415, "UnsupportedMediaType", message, details={})


def unsupported_media_type() -> ApiError:
    """415: a body of an unknown type."""
    return ApiError(415, "UnsupportedMediaType", "415: Unsupported Media Type", details={})


def invalid(kind: str, group: str, name: str, causes: Iterable[Cause]) -> ApiError:
    """422: the object breaks rules. Empty kind and name where the request rather than an object is wrong."""
    causes = list(causes)
    # Said once in the message even where it is found twice, as real servers do; the causes keep both.
    text = listed(list(dict.fromkeys(map(str, causes))))
    subject = f"{kind}.{group}" if group else kind
    details: dict[str, Any] = {
        key: value for key, value in (("name", name), ("group", group), ("kind", kind)) if value
    }  # fmt: skip
    details["causes"] = [_cause(cause) for cause in causes]
    return ApiError(422, "Invalid", f'{subject} "{name}" is invalid: {text}', details=details)


def rejected() -> ApiError:
    """422 without a reason: what a failed JSON patch gets, never more."""
    message = "the server rejected our request due to an error in our request"
    return ApiError(422, "Invalid", message, details={})


def too_many_requests(message: str, *, details: Mapping[str, Any] | None = None, retry_after: int = 1) -> ApiError:
    """429."""
    return ApiError(429, "TooManyRequests", message, details=details, retry_after=retry_after)


def internal(message: str) -> ApiError:
    """500."""
    return ApiError(
        500, "InternalError", f"Internal error occurred: {message}", details={"causes": [{"message": message}]}
    )


def listed(texts: Sequence[str]) -> str:
    """Several texts as one, the way Go prints errors together."""
    return texts[0] if len(texts) == 1 else f"[{', '.join(texts)}]"


def _cause(cause: Cause) -> dict[str, str]:
    return {"reason": cause.reason, "message": cause.message, "field": cause.field}
