"""A plugin server with plain answers, a kubelet beside it."""

from __future__ import annotations

import logging
import tempfile
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from gpushare.domain.pools import Pool, Share
from gpushare.domain.shares import ShareId
from gpushare.errors import GpuShareError
from gpushare.kubelet.plugin import PluginServer
from gpushare.kubelet.values import PreferenceRequest
from gpushare.sharing.responses import ContainerAnswer
from support.kubelets import Kubelet


def pool_of(*ids: str, resource: str = "nvidia.com/gpu", sick: Sequence[str] = ()) -> Pool:
    return Pool(
        resource=resource,
        base=resource,
        shares=tuple(Share(id=ShareId.parse(name), gpu_index=0, healthy=name not in sick, numa_node=1) for name in ids),
    )


class PlainAnswers:
    """Grants known devices, prefers the first ones."""

    def allocate(self, pool: Pool, ids: Sequence[str]) -> ContainerAnswer:
        known = {str(share.id) for share in pool.shares}
        for name in ids:
            if name not in known:
                raise GpuShareError(f"unknown device: {name}")
        return ContainerAnswer(envs={"NVIDIA_VISIBLE_DEVICES": ",".join(ids)})

    def prefer(self, pool: Pool, request: PreferenceRequest) -> Sequence[str]:  # noqa: ARG002 - plain
        return request.available[: request.size]


@pytest.fixture
def directory() -> Iterator[Path]:
    """Short enough for unix sockets, which pytest's own paths are not."""
    with tempfile.TemporaryDirectory(prefix="gs") as path:
        yield Path(path)


@pytest.fixture
def kubelet(directory: Path) -> Iterator[Kubelet]:
    kubelet = Kubelet(directory)
    yield kubelet
    kubelet.stop()


@pytest.fixture
def executor() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(4) as executor:
        yield executor


@pytest.fixture
def server(directory: Path) -> Iterator[PluginServer]:
    server = PluginServer(directory, pool_of("GPU-1", "GPU-2"), PlainAnswers(), logging.getLogger("test"))
    yield server
    server.stop()
