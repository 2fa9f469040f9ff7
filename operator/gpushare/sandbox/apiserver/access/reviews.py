"""Questions about access: who am I, may I, may they, whose token is this. Nothing of it is stored."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from gpushare.domain.manifests import Manifest
from gpushare.sandbox.apiserver import statuses
from gpushare.sandbox.apiserver.access.authentication import ISSUER, Authenticator
from gpushare.sandbox.apiserver.access.authorization import Authorizer
from gpushare.sandbox.apiserver.requests import Target, User


@dataclass(frozen=True, slots=True)
class Reviewer:
    """Answers the kinds of authentication.k8s.io and authorization.k8s.io."""

    authenticator: Authenticator
    authorizer: Authorizer

    def answer(self, review: Manifest, user: User, namespace: str) -> Manifest:
        """The review with its status. Raises `ApiError` 400 for one that asks nothing."""
        spec = review.get("spec") or {}
        match review["kind"]:
            case "SelfSubjectReview":
                status = {"userInfo": _shown(user)}
            case "TokenReview":
                status = self._token(spec)
            case "SelfSubjectRulesReview":
                status = self._rules(user, spec.get("namespace", ""))
            case "SelfSubjectAccessReview":
                status = self._access(user, spec)
            case "LocalSubjectAccessReview" if (spec.get("resourceAttributes") or {}).get("namespace") != namespace:
                raise statuses.bad_request(f"namespace in resourceAttributes must match {namespace}")
            case _:
                extra = {key: tuple(values) for key, values in (spec.get("extra") or {}).items()}
                them = User(spec.get("user", ""), tuple(spec.get("groups") or ()), spec.get("uid", ""), extra)
                status = self._access(them, spec)
        return {**review, "metadata": {"creationTimestamp": None, **(review.get("metadata") or {})}, "status": status}

    def _access(self, user: User, spec: Mapping[str, Any]) -> dict[str, Any]:
        resource, path = spec.get("resourceAttributes"), spec.get("nonResourceAttributes")
        if resource is not None:
            target = Target(
                resource.get("verb", ""), "", is_resource=True, group=resource.get("group", ""),
                version=resource.get("version", ""), resource=resource.get("resource", ""),
                subresource=resource.get("subresource", ""), namespace=resource.get("namespace", ""),
                name=resource.get("name", ""),
            )  # fmt: skip
        elif path is not None:
            target = Target(path.get("verb", ""), path.get("path", ""))
        else:
            raise statuses.bad_request("exactly one of nonResourceAttributes or resourceAttributes must be specified")
        decision = self.authorizer.decide(user, target)
        return {"allowed": decision.allowed, **({"reason": decision.reason} if decision.reason else {})}

    def _rules(self, user: User, namespace: str) -> dict[str, Any]:
        rules = self.authorizer.rules_of(user, namespace)
        paths = [rule for rule in rules if rule.get("nonResourceURLs")]
        return {
            "resourceRules": [rule for rule in rules if not rule.get("nonResourceURLs")],
            "nonResourceRules": paths,
            "incomplete": False,
        }

    def _token(self, spec: Mapping[str, Any]) -> dict[str, Any]:
        user = self.authenticator.user_of(spec.get("token", ""))
        if user is None:
            return {"user": {}, "error": "[invalid bearer token, token lookup failed]"}
        return {"authenticated": True, "user": _shown(user), "audiences": spec.get("audiences") or [ISSUER]}


def _shown(user: User) -> dict[str, Any]:
    shown: dict[str, Any] = {"username": user.name}
    if user.uid:
        shown["uid"] = user.uid
    shown["groups"] = list(user.groups)
    if user.extra:
        shown["extra"] = {key: list(values) for key, values in user.extra.items()}
    return shown
