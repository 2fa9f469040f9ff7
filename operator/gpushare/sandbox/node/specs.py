"""What a simulated node is made of: its size and labels, the programs that its pods may run, and how fast it lives.

Used by `sandbox.scenario`, which reads nodes from a file, and by whoever starts nodes.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self, TypeAlias
from urllib.parse import urlsplit

KUBELET_VERSION = "v1.36.3"
"""The release whose texts and statuses the simulated kubelet writes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Taint:
    """One taint that the node registers with."""

    key: str
    effect: str
    """`NoSchedule`, `PreferNoSchedule` or `NoExecute`."""
    value: str = ""

    def to_json(self) -> dict[str, str]:
        """The form of the API, which leaves an empty value out."""
        return {"key": self.key, **({"value": self.value} if self.value else {}), "effect": self.effect}


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeSpec:
    """One node as it comes to life, before any device plugin has registered."""

    name: str
    labels: Mapping[str, str] = field(default_factory=dict)
    """Besides those that every kubelet sets."""
    taints: tuple[Taint, ...] = ()
    cpu: str = "32"
    """Quantities, as Kubernetes writes them."""
    memory: str = "128Gi"
    ephemeral_storage: str = "400Gi"
    pods: int = 110
    kernel: str = "6.8.0-86-generic"
    os_image: str = "Ubuntu 24.04.3 LTS"


@dataclass(frozen=True, slots=True, kw_only=True)
class Invocation:
    """One start of one of our own programs, as the process of a container sees the world."""

    argv: tuple[str, ...]
    """Arguments after the name of the program."""
    environ: Mapping[str, str]
    root: Path
    """The container's `/`: what its volume mounts show lies below; at most 40 characters long."""
    node: str
    """Name of the node that the container runs on."""
    log: logging.Logger
    """What it writes stands in `kubectl logs`; no other logger leads there."""
    stop: asyncio.Event
    """Set instead of SIGTERM; who has not returned when the grace period is over is cancelled."""


Program: TypeAlias = Callable[[Invocation], Awaitable[int]]
"""Runs until it is stopped, or ends by itself; returns the exit code."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Endpoint:
    """Where the API server is for pods: `KUBERNETES_SERVICE_HOST` and `_PORT`."""

    host: str
    port: int

    @classmethod
    def from_url(cls, url: str) -> Self:
        """From the address in a kubeconfig, `https://127.0.0.1:6443`.

        Raises:
            ValueError: no address with a host.
        """
        parts = urlsplit(url)
        if not parts.hostname:
            raise ValueError(f"{url!r} is no address of an API server; they look like https://127.0.0.1:6443")
        return cls(host=parts.hostname, port=parts.port or (80 if parts.scheme == "http" else 443))


@dataclass(frozen=True, slots=True, kw_only=True)
class Pace:
    """How long things take, in seconds. Those of a real kubelet, but where a person would only wait."""

    lease: float = 10.0
    """Between two renewals of the node's Lease."""
    settle: float = 0.03
    """How long changes of devices are gathered before the Node is patched. A real kubelet waits for its next sync, 10 s."""
    run: float = 1.0
    """How long a simulated container runs that ends by itself."""
    retry: float = 2.0
    """Between two tries to mount volumes, or to create a container whose configuration is missing."""
    refresh: float = 3.0
    """Between two looks at what mounted ConfigMaps and Secrets hold. A real kubelet takes about a minute."""
    back_off: float = 10.0
    """First pause of CrashLoopBackOff; doubles with each restart."""
    back_off_most: float = 300.0
    back_off_forgotten: float = 600.0
    """A container that ran that long starts over with the first pause."""
    probe: float = 0.05
    """First pause between readiness probes before the first success; doubles up to `periodSeconds`, which a real kubelet
    waits for each time."""
    stop_grace: float = 300.0
    """How long the resources of a device plugin that is gone are still counted in the capacity."""
