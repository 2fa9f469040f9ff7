"""Who is asking: static bearer tokens, ServiceAccount tokens bound to pods, impersonation."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import secrets
import time
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from gpushare.domain.manifests import Manifest
from gpushare.sandbox.apiserver import statuses
from gpushare.sandbox.apiserver.requests import ANONYMOUS, Request, User
from gpushare.sandbox.apiserver.resources import NODES, PODS
from gpushare.sandbox.apiserver.storage import Record, Store

SERVICE_ACCOUNTS = ("", "serviceaccounts")
ISSUER = "https://kubernetes.default.svc.cluster.local"
MASTERS = "system:masters"
_AUTHENTICATED = "system:authenticated"
_ACCOUNT = "system:serviceaccount:"
_EXTRA = "authentication.kubernetes.io/"
_CLAIMS = "kubernetes.io"


@dataclass(frozen=True, slots=True)
class Token:
    """A ServiceAccount token, as it is given out."""

    text: str
    expires: int
    """Seconds since the epoch."""


class Authenticator:
    """Knows the static users, signs and reads ServiceAccount tokens."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._users: dict[str, User] = {}
        self._key = secrets.token_bytes(32)

    def token_of(self, user: str, groups: Sequence[str] = ()) -> str:
        """A static token of a user, made up on first use. Service accounts get one too, without any ServiceAccount."""
        text = hmac.new(self._key, json.dumps([user, *groups]).encode(), hashlib.sha256).hexdigest()
        self._users.setdefault(text, User(user, (*_with_account_groups(user, groups), _AUTHENTICATED)))
        return text

    def authenticate(self, request: Request) -> User:
        """The user of a request, after impersonation is asked for by `impersonated`. Raises `ApiError` 401."""
        scheme, _, token = request.headers.get("authorization", "").partition(" ")
        if not scheme:
            return ANONYMOUS
        user = self.user_of(token.strip()) if scheme.lower() == "bearer" else None
        if user is None:
            raise statuses.unauthorized()
        return user

    def user_of(self, token: str) -> User | None:
        """Whose token it is; None for one that is unknown, has run out, or is bound to what is gone."""
        return self._users.get(token) or self._account_of(token)

    def issue(self, account: Manifest, pod: Manifest | None, audiences: Sequence[str], seconds: int) -> Token:
        """A token of a ServiceAccount; with a pod, it ends with the pod and names the pod's node."""
        now = int(time.time())
        metadata = account["metadata"]
        bound: dict[str, Any] = {
            "namespace": metadata["namespace"],
            "serviceaccount": {"name": metadata["name"], "uid": metadata["uid"]},
        }
        if pod is not None:
            bound["pod"] = {"name": pod["metadata"]["name"], "uid": pod["metadata"]["uid"]}
            bound.update(self._node_claim(pod))
        claims = {
            "aud": list(audiences), "exp": now + seconds, "iat": now, "iss": ISSUER, "jti": str(uuid.uuid4()),
            _CLAIMS: bound, "nbf": now, "sub": f"{_ACCOUNT}{metadata['namespace']}:{metadata['name']}",
        }  # fmt: skip
        head = f"{_pack({'alg': 'HS256', 'typ': 'JWT'})}.{_pack(claims)}"
        return Token(f"{head}.{self._sign(head)}", now + seconds)

    def _node_claim(self, pod: Manifest) -> dict[str, Any]:
        node = self._store.get(NODES, "", pod["spec"].get("nodeName", ""))
        return {"node": {"name": node.name, "uid": node.object["metadata"]["uid"]}} if node else {}

    def _account_of(self, token: str) -> User | None:
        head, _, signature = token.rpartition(".")
        # As bytes, since a header may hold more than ASCII.
        if not head or not hmac.compare_digest(signature.encode(), self._sign(head).encode()):
            return None
        claims = _unpack(head.partition(".")[2])
        bound = claims[_CLAIMS]
        account, namespace = bound["serviceaccount"], bound["namespace"]
        if claims["exp"] < time.time() or not self._is_there(SERVICE_ACCOUNTS, namespace, account):
            return None
        if "pod" in bound and not self._is_there(PODS, namespace, bound["pod"]):
            return None
        extra = {"credential-id": (f"JTI={claims['jti']}",)}
        for word in ("pod", "node"):
            if word in bound:
                extra |= {f"{word}-name": (bound[word]["name"],), f"{word}-uid": (bound[word]["uid"],)}
        return User(
            claims["sub"],
            (*_with_account_groups(claims["sub"], ()), _AUTHENTICATED),
            account["uid"],
            {_EXTRA + name: values for name, values in extra.items()},
        )

    def _is_there(self, key: tuple[str, str], namespace: str, reference: Mapping[str, str]) -> bool:
        record: Record | None = self._store.get(key, namespace, reference["name"])
        return record is not None and record.object["metadata"]["uid"] == reference["uid"]

    def _sign(self, text: str) -> str:
        return _encode(hmac.new(self._key, text.encode(), hashlib.sha256).digest())


def impersonated(request: Request) -> User | None:
    """Whom the client wants to act as; None without the header. May it? is for `authorization` to say."""
    name = request.headers.get("impersonate-user", "")
    if not name:
        return None
    prefix = "impersonate-extra-"
    extra = {key.removeprefix(prefix): (value,) for key, value in request.headers.items() if key.startswith(prefix)}
    groups = _with_account_groups(name, request.groups)
    if name != ANONYMOUS.name and _AUTHENTICATED not in groups:
        groups = (*groups, _AUTHENTICATED)
    return replace(User(name, groups), uid=request.headers.get("impersonate-uid", ""), extra=extra)


def account_of(user: str) -> tuple[str, str] | None:
    """Namespace and name of a service account's user; None for other users."""
    namespace, separator, name = user.removeprefix(_ACCOUNT).partition(":")
    return (namespace, name) if separator and user.startswith(_ACCOUNT) else None


def _with_account_groups(user: str, groups: Sequence[str]) -> tuple[str, ...]:
    account = account_of(user)
    if account is None or groups:
        return tuple(groups)
    return ("system:serviceaccounts", f"system:serviceaccounts:{account[0]}")


def _pack(value: Mapping[str, Any]) -> str:
    return _encode(json.dumps(value, separators=(",", ":")).encode())


def _unpack(text: str) -> dict[str, Any]:
    value: dict[str, Any] = json.loads(base64.urlsafe_b64decode(text + "=" * (-len(text) % 4)))
    return value


def _encode(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()
