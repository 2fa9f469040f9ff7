"""What the pods of one node share: the door to the cluster, the device manager, the file system, the programs."""

from __future__ import annotations

import itertools
import logging
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field

from gpushare.kube.cluster import Cluster
from gpushare.sandbox.loops.recording import Recorder
from gpushare.sandbox.node.plugins import Plugins
from gpushare.sandbox.node.specs import Endpoint, Pace, Program
from gpushare.sandbox.node.statuses import HOST_IP
from gpushare.sandbox.node.volumes import HostFolders


@dataclass(slots=True)
class Addresses:
    """IP addresses for pods, one source for all nodes of a process."""

    _numbers: Iterator[int] = field(default_factory=lambda: itertools.count(1))

    def next(self, *, is_program: bool, host_network: bool) -> str:
        """The address of a pod.

        One that runs a program of ours gets one on the loopback interface, on which it can really listen and be asked;
        the others have one that only looks like a pod's.
        """
        if host_network:
            return HOST_IP
        number = next(self._numbers) % 0xFFFF
        return f"{'127.244' if is_program else '10.244'}.{number >> 8}.{number & 0xFF}"


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
