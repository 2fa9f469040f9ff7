"""Requests and answers as values, and what a request asks for.

`server` makes them from HTTP and back, so that everything in between needs no sockets. Resolving a URL follows the same
rules as a real server's: verb, group, resource and subresource are also what authorization decides on.
"""

from __future__ import annotations

import contextlib
import json
import re
from collections.abc import AsyncGenerator, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, TypeAlias

import yaml

from gpushare.sandbox.apiserver import statuses
from gpushare.sandbox.apiserver.objects.jsonvalues import encode, quoted

JSON = "application/json"
YAML = "application/yaml"
PROTOBUF = "application/vnd.kubernetes.protobuf"
_YAML_LOADER: type[Any] = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_WHOLE = re.compile(r"[+-]?[0-9]+")
_READ_VERBS = {"GET": "get", "HEAD": "get"}
_WRITE_VERBS = {"POST": "create", "PUT": "update", "PATCH": "patch", "DELETE": "delete"}


@dataclass(frozen=True, slots=True)
class User:
    """Who is asking."""

    name: str
    groups: tuple[str, ...] = ()
    uid: str = ""
    extra: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


ANONYMOUS = User("system:anonymous", ("system:unauthenticated",))


@dataclass(frozen=True)
class Request:
    """One HTTP request. Header names are lower case."""

    method: str
    path: str
    query: Mapping[str, str]
    headers: Mapping[str, str]
    body: bytes = b""
    groups: tuple[str, ...] = ()
    """All values of `Impersonate-Group`, the one header that comes several times."""

    @property
    def content_type(self) -> str:
        """The body's type, without parameters."""
        return self.headers.get("content-type", "").partition(";")[0].strip()

    @property
    def dry_run(self) -> bool:
        """Whether nothing may be stored."""
        return bool(self.query.get("dryRun"))

    @property
    def manager(self) -> str:
        """The field manager: named, or the program that asks."""
        return self.query.get("fieldManager") or self.headers.get("user-agent", "unknown").partition("/")[0]

    @property
    def is_watch(self) -> bool:
        """Whether the client wants to follow a list."""
        return self.query.get("watch", "") in ("true", "1")

    def flag(self, name: str) -> bool | None:
        """A boolean parameter; None when it is absent."""
        value = self.query.get(name)
        return None if value is None else value in ("true", "1", "True")

    def number(self, name: str) -> int | None:
        """A whole number among the parameters; None when it is absent. Raises `ApiError` 400."""
        text = self.query.get(name)
        if not text:
            return None
        if not _WHOLE.fullmatch(text):
            raise statuses.bad_request(f"strconv.ParseInt: parsing {quoted(text)}: invalid syntax")
        return int(text)

    def parsed(self) -> Any:
        """The body as JSON or YAML; None for an empty one. Raises ValueError."""
        if not self.body:
            return None
        if self.content_type in (YAML, "application/apply-patch+yaml", "text/yaml"):
            if self.body.startswith(b"{"):
                # What programs apply is JSON, which is YAML too, but read ten times faster as what it is.
                with contextlib.suppress(ValueError):
                    return json.loads(self.body)
            try:
                return yaml.load(self.body, Loader=_YAML_LOADER)  # noqa: S506 - it is a safe loader, the quick one where it is there
            except yaml.YAMLError as error:
                raise ValueError(f"error parsing YAML: {error}") from error
        return json.loads(self.body)


@dataclass(frozen=True, slots=True)
class Response:
    """A whole answer."""

    body: bytes
    code: int = 200
    content_type: str = JSON
    headers: tuple[tuple[str, str], ...] = ()

    @classmethod
    def of(cls, value: Any, code: int = 200, warnings: Iterable[str] = ()) -> Response:
        """An object as JSON, with the warnings that kubectl shows."""
        return cls(encode(value) + b"\n", code, headers=warning_headers(warnings))

    @classmethod
    def refused(cls, error: statuses.ApiError) -> Response:
        """The Status of a refusal."""
        headers = (("Retry-After", str(error.retry_after)),) if error.retry_after else ()
        return cls(encode(error.status()) + b"\n", error.code, headers=(*headers, *warning_headers(error.warnings)))


def warning_headers(warnings: Iterable[str]) -> tuple[tuple[str, str], ...]:
    """Headers with texts that kubectl shows as warnings."""
    return tuple(("Warning", f"299 - {json.dumps(text)}") for text in warnings)


@dataclass(frozen=True, slots=True)
class Stream:
    """An answer that goes on: a watch, or a log that is followed."""

    chunks: AsyncGenerator[bytes, None]
    content_type: str = JSON


Answer: TypeAlias = Response | Stream


@dataclass(frozen=True)
class Target:
    """What a request is about, in the words of authorization."""

    verb: str
    path: str
    is_resource: bool = False
    group: str = ""
    version: str = ""
    resource: str = ""
    subresource: str = ""
    namespace: str = ""
    name: str = ""

    @property
    def plural(self) -> str:
        """The resource, under the name that errors want."""
        return self.resource

    @property
    def kind(self) -> str:
        """Errors of authorization do not know the kind."""
        return ""

    @cached_property
    def qualified_resource(self) -> str:
        """`pods` or `pods/log`, as rules name it."""
        return f"{self.resource}/{self.subresource}" if self.subresource else self.resource


def resolve(request: Request) -> Target:
    """What a request is about. Whether such a kind exists is not asked yet."""
    parts = [part for part in request.path.split("/") if part]
    place = _group_version(parts)
    if place is None:
        return Target(request.method.lower(), request.path)
    group, version, rest = place
    namespace, rest = _namespace(group, rest)
    name = rest[1] if len(rest) > 1 else ""
    verb = _verb(request, name)
    return Target(
        verb=verb, path=request.path, is_resource=True, group=group, version=version, resource=rest[0],
        subresource="/".join(rest[2:]), namespace=namespace, name=name or _selected_name(request),
    )  # fmt: skip


def _selected_name(request: Request) -> str:
    """Lists and watches of one object by name are allowed to whoever may have that object."""
    found = re.fullmatch(r"metadata\.name==?([^,]+)", request.query.get("fieldSelector", ""))
    return found[1] if found else ""


def _group_version(parts: list[str]) -> tuple[str, str, list[str]] | None:
    """Group, version and what follows; None for paths that are no resources (discovery among them)."""
    if len(parts) > 2 and parts[0] == "api":
        return "", parts[1], parts[2:]
    if len(parts) > 3 and parts[0] == "apis":
        return parts[1], parts[2], parts[3:]
    return None


def _namespace(group: str, rest: list[str]) -> tuple[str, list[str]]:
    if rest[0] != "namespaces" or len(rest) < 2:
        return "", rest
    # /namespaces/x, /namespaces/x/status and /finalize are about the namespace, which is its own namespace then.
    if len(rest) == 2 or (not group and rest[2] in ("status", "finalize") and len(rest) == 3):
        return rest[1], rest
    return rest[1], rest[2:]


def _verb(request: Request, name: str) -> str:
    if request.method in _READ_VERBS:
        if name:
            return "get"
        return "watch" if request.is_watch else "list"
    if request.method == "DELETE" and not name:
        return "deletecollection"
    return _WRITE_VERBS.get(request.method, request.method.lower())
