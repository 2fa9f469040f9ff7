"""A KubeSchedulerConfiguration, as far as this scheduler follows one: profiles by name, and extenders. Pure; used by `app`."""

from __future__ import annotations

import base64
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from gpushare.api.durations import read_duration
from gpushare.domain.manifests import Manifest

DEFAULT_NAME: Final = "default-scheduler"
_DEFAULT_SECONDS: Final = 5.0


@dataclass(frozen=True, slots=True, kw_only=True)
class ExtenderSettings:
    """One entry of `extenders`."""

    url: str
    """`urlPrefix`, without the slash at its end."""
    filter_verb: str = ""
    """Empty: this is not asked of it; so with the other verbs."""
    prioritize_verb: str = ""
    bind_verb: str = ""
    preempt_verb: str = ""
    weight: int = 1
    seconds: float = _DEFAULT_SECONDS
    sends_names: bool = False
    """`nodeCacheCapable`: it knows the nodes, and is told their names."""
    managed: frozenset[str] = frozenset()
    """Resources whose pods concern it; empty: all pods do."""
    ignored: frozenset[str] = frozenset()
    """Those of them that the scheduler itself does not count."""
    is_ignorable: bool = False
    """Pods are placed without it while it is away."""
    is_verified: bool = True
    ca: str = ""
    """Certificates of authorities (PEM); empty: those of the machine."""
    server_name: str = ""

    def is_interested(self, pod: Manifest) -> bool:
        """Whether a pod concerns it."""
        return not self.managed or not self.managed.isdisjoint(_resources_of(pod))


@dataclass(frozen=True, slots=True, kw_only=True)
class Profile:
    """Whom the pods are given to that name it as their scheduler."""

    name: str = DEFAULT_NAME
    extenders: tuple[ExtenderSettings, ...] = ()

    @property
    def ignored(self) -> frozenset[str]:
        """Resources that only extenders count."""
        return frozenset().union(*(extender.ignored for extender in self.extenders))


def read_profiles(configuration: Mapping[str, Any]) -> tuple[Profile, ...]:
    """The profiles of a KubeSchedulerConfiguration; each has all of its extenders, as in a real scheduler."""
    extenders = tuple(map(_read_extender, configuration.get("extenders") or ()))
    entries: list[dict[str, Any]] = configuration.get("profiles") or [{}]
    return tuple(Profile(name=entry.get("schedulerName") or DEFAULT_NAME, extenders=extenders) for entry in entries)


def _read_extender(entry: Mapping[str, Any]) -> ExtenderSettings:
    tls, managed = entry.get("tlsConfig") or {}, entry.get("managedResources") or ()
    return ExtenderSettings(
        url=entry["urlPrefix"].rstrip("/"),
        filter_verb=entry.get("filterVerb", ""),
        prioritize_verb=entry.get("prioritizeVerb", ""),
        bind_verb=entry.get("bindVerb", ""),
        preempt_verb=entry.get("preemptVerb", ""),
        weight=entry.get("weight", 1),
        seconds=read_duration(entry.get("httpTimeout") or "0") or _DEFAULT_SECONDS,
        sends_names=entry.get("nodeCacheCapable", False),
        managed=frozenset(resource["name"] for resource in managed),
        ignored=frozenset(resource["name"] for resource in managed if resource.get("ignoredByScheduler")),
        is_ignorable=entry.get("ignorable", False),
        is_verified=not tls.get("insecure", False),
        ca=base64.b64decode(tls.get("caData", "")).decode(),
        server_name=tls.get("serverName", ""),
    )


def _resources_of(pod: Manifest) -> Iterator[str]:
    spec = pod["spec"]
    for container in (*(spec.get("initContainers") or ()), *spec["containers"]):
        resources = container.get("resources") or {}
        yield from resources.get("requests") or ()
        yield from resources.get("limits") or ()
