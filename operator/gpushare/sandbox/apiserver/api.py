"""One request from beginning to end: who asks, may they, what is it about, and who in this package answers it."""

from __future__ import annotations

import json
import logging
import time
from dataclasses import dataclass
from typing import Any

from gpushare.sandbox.apiserver import kinds, statuses
from gpushare.sandbox.apiserver.access import authentication
from gpushare.sandbox.apiserver.access.authentication import MASTERS, Authenticator
from gpushare.sandbox.apiserver.access.authorization import Authorizer
from gpushare.sandbox.apiserver.access.reviews import Reviewer
from gpushare.sandbox.apiserver.handling.admission import Admission
from gpushare.sandbox.apiserver.handling.deleting import Deleter
from gpushare.sandbox.apiserver.handling.dispatching import Objects
from gpushare.sandbox.apiserver.handling.policies import Policies
from gpushare.sandbox.apiserver.handling.reviewing import Reviewed
from gpushare.sandbox.apiserver.handling.subresources import Fetch, Subresources
from gpushare.sandbox.apiserver.handling.webhooks import Call, Webhooks
from gpushare.sandbox.apiserver.handling.writing import Writer
from gpushare.sandbox.apiserver.protocol import discovery, openapi
from gpushare.sandbox.apiserver.requests import Answer, Request, Response, Target, User, resolve
from gpushare.sandbox.apiserver.resources import CUSTOM_RESOURCE_DEFINITIONS, Registry
from gpushare.sandbox.apiserver.statuses import ApiError
from gpushare.sandbox.apiserver.storage import DELETED, Event, Store
from gpushare.sandbox.apiserver.upkeep import bootstrapping
from gpushare.sandbox.apiserver.upkeep.garbage import Collector

_PLAIN = "text/plain; charset=utf-8"


@dataclass(slots=True)
class Trouble:
    """Answers of a server that has just come back: 403 for all but masters, then 429, each until a moment of the clock."""

    forbidden_until: float = 0.0
    busy_until: float = 0.0

    def begin(self, *, forbidden: float, busy: float) -> None:
        """Starts the trouble now; durations in seconds."""
        self.forbidden_until = time.monotonic() + forbidden
        self.busy_until = self.forbidden_until + busy

    def check_busy(self) -> None:
        """Raises `ApiError` 429 in its time."""
        if self.forbidden_until <= time.monotonic() < self.busy_until:
            raise statuses.too_many_requests("storage is (re)initializing", details={"retryAfterSeconds": 1})

    @property
    def forbids(self) -> bool:
        """Whether nobody's roles are known yet."""
        return time.monotonic() < self.forbidden_until


class Api:
    """A whole API server but for the sockets."""

    def __init__(self, *, version: str, ca_pem: str, fetch: Fetch, call: Call, log: logging.Logger) -> None:
        self.store = Store()
        self.registry = Registry()
        self.authenticator = Authenticator(self.store)
        self.authorizer = Authorizer(self.store)
        self.trouble = Trouble()
        writer = Writer(self.store, Admission(self.store, self.authorizer, log), Policies(self.store))
        reviewed = Reviewed(writer, Webhooks(self.store, call, log))
        deleter = Deleter(self.store)
        self.collector = Collector(
            store=self.store, registry=self.registry, writer=writer, deleter=deleter, ca_pem=ca_pem, log=log
        )
        self._objects = Objects(
            registry=self.registry,
            store=self.store,
            writer=reviewed,
            deleter=deleter,
            authorizer=self.authorizer,
            reviewer=Reviewer(self.authenticator, self.authorizer),
            subresources=Subresources(
                store=self.store, writer=reviewed, deleter=deleter, authenticator=self.authenticator, fetch=fetch
            ),
        )
        self._openapi = openapi.OpenApi(self.registry, version)
        self._version = version
        self._log = log
        self.registry.add(kinds.built_in())
        self.store.listeners.append(self._follow_definitions)
        bootstrapping.furnish(self.registry, writer, ca_pem)
        self.collector.settle()
        self.store.forget()

    async def handle(self, request: Request) -> Answer:
        """The answer to a request; never raises."""
        try:
            return await self._answer(request)
        except ApiError as error:
            return Response.refused(error)
        except Exception as error:  # noqa: BLE001 - logged in full; the client gets what a real server's panic gives
            self._log.error("request failed", exc_info=error, extra={"method": request.method, "path": request.path})
            return Response.refused(statuses.internal(repr(error)))

    async def _answer(self, request: Request) -> Answer:
        user = self._user(request)
        target = resolve(request)
        self._check_access(user, target)
        if not target.is_resource:
            return self._answer_page(request)
        self.trouble.check_busy()
        if target.group and target.group not in self.registry.groups:
            # Not a Status: clients then say which kind they looked for.
            return Response(b"404 page not found\n", 404, _PLAIN)
        resource = self.registry.find(target.group, target.version, target.resource)
        return await self._objects.answer(resource, target, request, user)

    def _user(self, request: Request) -> User:
        user = self.authenticator.authenticate(request)
        wanted = authentication.impersonated(request)
        if wanted is None:
            return user
        for target in _impersonations(wanted, request):
            self._check_access(user, target)
        return wanted

    def _check_access(self, user: User, target: Target) -> None:
        if self.trouble.forbids and MASTERS not in user.groups:
            self.authorizer.refuse(user, target)
        self.authorizer.check(user, target)

    def _answer_page(self, request: Request) -> Answer:
        path = request.path.rstrip("/")
        if path.split("/")[1] in ("healthz", "readyz", "livez"):
            return Response(b"ok", content_type=_PLAIN)
        if path == "/version":
            return Response(json.dumps(_version_of(self._version), indent=2).encode() + b"\n")
        if path.startswith("/openapi/"):
            return self._openapi.answer(request)
        if path.startswith("/api"):
            return discovery.answer(self.registry, request)
        raise statuses.no_such_resource()

    def _follow_definitions(self, event: Event) -> None:
        if event.key != CUSTOM_RESOURCE_DEFINITIONS:
            return
        if event.type == DELETED:
            self.registry.undefine(event.record.object)
        elif event.previous is None or event.previous.object["spec"] != event.record.object["spec"]:
            self.registry.define(event.record.object)


def _impersonations(wanted: User, request: Request) -> list[Target]:
    """What a client must be allowed to do before it may act as somebody else."""
    account = authentication.account_of(wanted.name)
    place = {"resource": "users", "name": wanted.name}
    if account:
        place = {"resource": "serviceaccounts", "namespace": account[0], "name": account[1]}
    groups = [{"resource": "groups", "name": group} for group in request.groups]
    return [Target("impersonate", request.path, is_resource=True, **each) for each in (place, *groups)]


def _version_of(git_version: str) -> dict[str, Any]:
    major, minor = git_version.removeprefix("v").split(".")[:2]
    return {
        "major": major, "minor": minor, "emulationMajor": major, "emulationMinor": minor,
        "minCompatibilityMajor": major, "minCompatibilityMinor": str(int(minor) - 1), "gitVersion": git_version,
        "gitCommit": "", "gitTreeState": "clean", "buildDate": "2026-01-01T00:00:00Z", "goVersion": "", "compiler": "cpython",
        "platform": "linux/amd64",
    }  # fmt: skip
