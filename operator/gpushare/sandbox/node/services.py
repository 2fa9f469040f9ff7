"""What the pods of one node share: the door to the cluster, the device manager, the file system, the programs."""

from __future__ import annotations

import itertools
import logging
import random
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from ipaddress import IPv4Address

from gpushare.kube.cluster import Cluster
from gpushare.sandbox.loops.recording import Recorder
from gpushare.sandbox.node.plugins import Plugins
from gpushare.sandbox.node.specs import Endpoint, Pace, Program
from gpushare.sandbox.node.statuses import HOST_IP
from gpushare.sandbox.node.volumes import HostFolders

_LOOPBACK = range(int(IPv4Address("127.64.0.1")), int(IPv4Address("127.250.0.0")))
_PODS = range(int(IPv4Address("10.244.0.1")), int(IPv4Address("10.245.0.0")))


def _numbers_of_our_own() -> Iterator[int]:
    # Another sandbox on this machine shares the interface: a start by chance makes it unlikely that they ever meet.
    return itertools.count(random.randrange(len(_LOOPBACK)))  # noqa: S311 - nothing to guard


@dataclass(slots=True)
class Addresses:
    """IP addresses for pods, one source for all nodes of a process."""

    _programs: Iterator[int] = field(default_factory=_numbers_of_our_own)
    _others: Iterator[int] = field(default_factory=itertools.count)

    def next(self, *, is_program: bool, host_network: bool) -> str:
        """The address of a pod.

        One that runs a program of ours gets one of its own on the loopback interface, on which it can really listen and be
        asked. Even on the host's network: all nodes share one host here, and their agents one port. The others have one
        that only looks like a pod's.
        """
        if is_program:
            return str(IPv4Address(_LOOPBACK[next(self._programs) % len(_LOOPBACK)]))
        return HOST_IP if host_network else str(IPv4Address(_PODS[next(self._others) % len(_PODS)]))


@dataclass(frozen=True, slots=True, kw_only=True)
class Services:
    """Made once a node, handed to each pod."""

    node: str
    cluster: Cluster
    recorder: Recorder
    plugins: Plugins
    allocatable: Callable[[], Mapping[str, str]]
    """What the Node offers now."""
    programs: Mapping[str, Program]
    folders: HostFolders
    addresses: Addresses
    api: Endpoint
    pace: Pace
    log: logging.Logger
    numbers: Iterator[int] = field(default_factory=lambda: itertools.count(1))
    """For the roots of containers."""
