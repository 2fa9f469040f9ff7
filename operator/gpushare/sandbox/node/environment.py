"""The environment and arguments of a container, from its specification and from what that refers to. Pure.

Called by the pod's worker before each start of a container. Order and errors as in a kubelet.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from math import ceil
from typing import Any

from gpushare.domain.manifests import Manifest
from gpushare.errors import GpuShareError
from gpushare.sandbox.apiserver.objects import quantities
from gpushare.sandbox.node.specs import Endpoint

_REFERENCE = re.compile(r"\$(?:\$|\(([^)]*)\))")
_SUBSCRIPT = re.compile(r"metadata\.(labels|annotations)\['(.+)'\]")
_WHOLE_NODE = {"cpu": "cpu", "memory": "memory", "ephemeral-storage": "ephemeral-storage"}


class ConfigMissing(GpuShareError):  # noqa: N818 - the state is the name
    """Something that the container's environment refers to does not exist; the container waits for it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Surroundings:
    """What a container's environment may refer to besides its own specification."""

    node: str
    host_ip: str
    pod_ip: str
    api: Endpoint
    allocatable: Mapping[str, str] = field(default_factory=dict)
    """The node's; stands in for limits that the container does not set."""
    config_maps: Mapping[str, Manifest | None] = field(default_factory=dict)
    """By name; None for one that does not exist."""
    secrets: Mapping[str, Manifest | None] = field(default_factory=dict)
    """By name, `data` decoded."""


def with_contents(
    around: Surroundings, config_maps: Mapping[str, Manifest | None], secrets: Mapping[str, Manifest | None]
) -> Surroundings:
    """The surroundings with what one container refers to."""
    return replace(around, config_maps=config_maps, secrets=secrets)


def expand(text: str, variables: Mapping[str, str]) -> str:
    """Replaces `$(NAME)`; `$$` is a dollar sign, and a name that is not set stays as it is written."""

    def value_of(match: re.Match[str]) -> str:
        name = match[1]
        return "$" if name is None else variables.get(name, match[0])

    return _REFERENCE.sub(value_of, text)


def config_maps_of(container: Mapping[str, Any]) -> set[str]:
    """Names of the ConfigMaps that the container's environment refers to."""
    return set(_referred(container, "configMapKeyRef", "configMapRef"))


def secrets_of(container: Mapping[str, Any]) -> set[str]:
    """Names of the Secrets that the container's environment refers to."""
    return set(_referred(container, "secretKeyRef", "secretRef"))


def _referred(container: Mapping[str, Any], key: str, whole: str) -> Iterator[str]:
    for variable in container.get("env") or ():
        if reference := (variable.get("valueFrom") or {}).get(key):
            yield reference["name"]
    for source in container.get("envFrom") or ():
        if reference := source.get(whole):
            yield reference["name"]


def build_environ(
    pod: Manifest, container: Mapping[str, Any], around: Surroundings, given: Mapping[str, str] | None = None
) -> dict[str, str]:
    """All variables of one container.

    What the device plugin gave comes first and the specification last, so that a user's variable wins, as it does with a
    real kubelet and containerd.

    Raises:
        ConfigMissing: a ConfigMap, a Secret or a key of one is not there and is not optional.
    """
    environ = dict(given or {}) | _service_variables(around.api)
    for source in container.get("envFrom") or ():
        environ |= _variables_from(source, around)
    for variable in container.get("env") or ():
        value = (
            _value_from(pod, container, variable["valueFrom"], around)
            if variable.get("valueFrom")
            else expand(variable.get("value") or "", environ)
        )
        if value is not None:
            environ[variable["name"]] = value
    return environ


def build_words(container: Mapping[str, Any], environ: Mapping[str, str]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Command and arguments with their variables filled in."""
    command = tuple(expand(word, environ) for word in container.get("command") or ())
    return command, tuple(expand(word, environ) for word in container.get("args") or ())


def _service_variables(api: Endpoint) -> dict[str, str]:
    url = f"tcp://{api.host}:{api.port}"
    port = f"KUBERNETES_PORT_{api.port}_TCP"
    return {
        "KUBERNETES_SERVICE_HOST": api.host,
        "KUBERNETES_SERVICE_PORT": str(api.port),
        "KUBERNETES_SERVICE_PORT_HTTPS": str(api.port),
        "KUBERNETES_PORT": url,
        port: url,
        f"{port}_PROTO": "tcp",
        f"{port}_PORT": str(api.port),
        f"{port}_ADDR": api.host,
    }


def _variables_from(source: Mapping[str, Any], around: Surroundings) -> dict[str, str]:
    for key, kind, known in (
        ("configMapRef", "configmap", around.config_maps),
        ("secretRef", "secret", around.secrets),
    ):
        if reference := source.get(key):
            found = known.get(reference["name"])
            if found is None and not reference.get("optional"):
                raise ConfigMissing(f'{kind} "{reference["name"]}" not found')
            prefix = source.get("prefix") or ""
            return {prefix + name: value for name, value in ((found or {}).get("data") or {}).items()}
    return {}


def _value_from(
    pod: Manifest, container: Mapping[str, Any], source: Mapping[str, Any], around: Surroundings
) -> str | None:
    if reference := source.get("configMapKeyRef"):
        return _key_of(pod, "ConfigMap", reference, around.config_maps)
    if reference := source.get("secretKeyRef"):
        return _key_of(pod, "Secret", reference, around.secrets)
    if reference := source.get("resourceFieldRef"):
        return resource_of(container, reference, around.allocatable)
    return field_of(pod, source["fieldRef"]["fieldPath"], around)


def _key_of(pod: Manifest, kind: str, reference: Mapping[str, Any], known: Mapping[str, Manifest | None]) -> str | None:
    name, key = reference["name"], reference["key"]
    found = known.get(name)
    value = ((found or {}).get("data") or {}).get(key)
    if value is not None:
        return str(value)
    if reference.get("optional"):
        return None
    if found is None:
        raise ConfigMissing(f'{kind.lower()} "{name}" not found')
    raise ConfigMissing(f"couldn't find key {key} in {kind} {pod['metadata']['namespace']}/{name}")


def field_of(pod: Manifest, path: str, around: Surroundings) -> str:
    """A field of the pod, for the downward API: `metadata.name`, `spec.nodeName`, `status.podIP`, ...

    Raises:
        ConfigMissing: a path that the downward API does not have.
    """
    metadata, spec = pod["metadata"], pod["spec"]
    if subscript := _SUBSCRIPT.fullmatch(path):
        return str((metadata.get(subscript[1]) or {}).get(subscript[2], ""))
    values = {
        "metadata.name": metadata["name"],
        "metadata.namespace": metadata["namespace"],
        "metadata.uid": metadata["uid"],
        "metadata.labels": _lines(metadata.get("labels")),
        "metadata.annotations": _lines(metadata.get("annotations")),
        "spec.nodeName": around.node,
        "spec.serviceAccountName": spec.get("serviceAccountName", ""),
        "status.hostIP": around.host_ip,
        "status.hostIPs": around.host_ip,
        "status.podIP": around.pod_ip,
        "status.podIPs": around.pod_ip,
    }
    if path not in values:
        raise ConfigMissing(f"unsupported fieldPath: {path}")
    return str(values[path])


def _lines(pairs: Mapping[str, str] | None) -> str:
    return "\n".join(f'{key}="{value}"' for key, value in sorted((pairs or {}).items()))


def resource_of(container: Mapping[str, Any], reference: Mapping[str, Any], allocatable: Mapping[str, str]) -> str:
    """A limit or request of a container, divided by the divisor and rounded up; an absent limit is what the node has."""
    which, _, resource = reference["resource"].partition(".")
    listed = (container.get("resources") or {}).get(which) or {}
    default = allocatable.get(_WHOLE_NODE.get(resource, ""), "0") if which == "limits" else "0"
    divisor = quantities.parse(reference.get("divisor") or "1") or Fraction(1)
    return str(ceil(quantities.parse(listed.get(resource, default)) / divisor))
