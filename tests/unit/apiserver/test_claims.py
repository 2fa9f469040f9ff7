"""What server-side apply refuses in a configuration: the texts are those of Kubernetes 1.36.3."""

from __future__ import annotations

from typing import Any

import pytest

from gpushare.domain.manifests import Manifest
from gpushare.sandbox.apiserver.objects import schemas
from gpushare.sandbox.apiserver.patching import claims
from gpushare.sandbox.apiserver.statuses import ApiError
from support.embedded_api import APPLY, EmbeddedApi

DEPLOYMENT = schemas.definition(("apps", "v1", "Deployment"))
CONTAINERS = ".spec.template.spec.containers"


def deployment(*containers: Any, **spec: Any) -> Manifest:
    pod = {"containers": [*containers], **spec}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "z", "namespace": "t"},
        "spec": {"template": {"spec": pod}},
    }


@pytest.mark.parametrize(
    ("config", "text"),
    [
        pytest.param(deployment(foo=1, bar={}), ".spec.template.spec.bar: field not declared in schema", id="unknown"),
        pytest.param(
            deployment({"name": "c", "foo": None}), f'{CONTAINERS}[name="c"].foo: field not declared in schema', id="in an item"
        ),
        pytest.param(
            deployment(tolerations=[{}, {"foo": 1}]),
            ".spec.template.spec.tolerations[1].foo: field not declared in schema",
            id="in an atomic list",
        ),
        pytest.param(
            deployment({"name": "c", "ports": [{"containerPort": 80}, {"containerPort": 80, "protocol": "TCP"}]}),
            f'{CONTAINERS}[name="c"].ports: duplicate entries for key [containerPort=80,protocol="TCP"]',
            id="twice, one by default",
        ),
        pytest.param(
            deployment({"name": "c"}, {"name": "c"}, {"name": "c"}),
            "errors:" + 2 * f'\n  {CONTAINERS}: duplicate entries for key [name="c"]',
            id="thrice",
        ),
        pytest.param(
            {**deployment(), "metadata": {"name": "z", "namespace": "t", "finalizers": ["a/b", "a/b"]}},
            '.metadata.finalizers: duplicate entries for key [="a/b"]',
            id="twice in a set",
        ),
    ],
)  # fmt: skip
def test_refused(config: Manifest, text: str) -> None:
    """Nothing is applied of a configuration with a slip of the pen."""
    with pytest.raises(ApiError) as refused:
        claims.check(config, DEPLOYMENT)
    assert refused.value.code == 500
    assert refused.value.message == f"failed to create typed patch object (t/z; apps/v1, Kind=Deployment): {text}"


@pytest.mark.parametrize(
    "config",
    [
        pytest.param(deployment({"name": "c", "args": ["a", "a"]}, {"name": "d"}), id="twice in an atomic list"),
        pytest.param(deployment("c", hostNetwork="yes"), id="wrong types, which are somebody else's"),
        pytest.param({**deployment(), "status": None}, id="null"),
    ],
)
def test_let_through(config: Manifest) -> None:
    """What may be stays."""
    claims.check(config, DEPLOYMENT)


async def test_nothing_is_stored() -> None:
    """The door to it."""
    api = EmbeddedApi()
    path = "/api/v1/namespaces/default/configmaps/a"
    config = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "dta": {}}
    code, status = await api.call("PATCH", f"{path}?fieldManager=m", config, kind=APPLY)
    assert (code, status["message"].endswith("(/a; /v1, Kind=ConfigMap): .dta: field not declared in schema")) == (
        500,
        True,
    )
    assert (await api.call("GET", path))[0] == 404


async def test_of_which_object() -> None:
    """A version says nothing of an object that there is not; a uid does, and so it does where there is another object."""
    api = EmbeddedApi()
    path = "/api/v1/namespaces/default/configmaps/a?fieldManager=m"
    config = {"apiVersion": "v1", "kind": "ConfigMap"}
    assert (await api.call("PATCH", path, {**config, "metadata": {"uid": "u"}}, kind=APPLY))[0] == 409
    assert (await api.call("PATCH", path, {**config, "metadata": {"resourceVersion": "1"}}, kind=APPLY))[0] == 201
    code, status = await api.call("PATCH", path, {**config, "metadata": {"uid": "u"}}, kind=APPLY)
    assert (code, status["message"]) == (
        422, 'ConfigMap "a" is invalid: metadata.uid: Invalid value: "u": field is immutable',
    )  # fmt: skip
