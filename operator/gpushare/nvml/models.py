"""GPU models that `simulated` knows, with the figures of their public data sheets."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from gpushare.domain.devices import ComputeCapability, MigEngines

GPU_SLICES: Final = 7
MEMORY_SLICES: Final = 8


@dataclass(frozen=True, slots=True)
class Profile:
    """One way of making a MIG instance."""

    gpu_slices: int
    memory_slices: int
    """Eighths of the GPU's memory."""
    most: int
    """Instances of it on one GPU."""
    memory_mib: int
    multiprocessors: int
    engines: MigEngines
    first_id: int
    """GPU instance id of the first one."""


@dataclass(frozen=True, slots=True)
class Model:
    """One model."""

    product: str
    """As NVML spells it."""
    memory_mib: int
    compute_capability: ComputeCapability
    profiles: Mapping[str, Profile]
    aliases: tuple[str, ...] = ()


def _profile(  # noqa: PLR0913, PLR0917 - a row of a table
    slices: int,
    memory_slices: int,
    most: int,
    memory_mib: int,
    multiprocessors: int,
    engines: tuple[int, ...],
    first_id: int,
) -> Profile:
    copy, decoder, jpeg, ofa = engines
    found = MigEngines(copy=copy, decoder=decoder, jpeg=jpeg, ofa=ofa)
    return Profile(slices, memory_slices, most, memory_mib, multiprocessors, found, first_id)


_A100_40: Final = {
    "1g.5gb": _profile(1, 1, 7, 4864, 14, (1, 0, 0, 0), 7),
    "1g.5gb+me": _profile(1, 1, 1, 4864, 14, (1, 1, 1, 1), 7),
    "1g.10gb": _profile(1, 2, 4, 9856, 14, (1, 0, 0, 0), 3),
    "2g.10gb": _profile(2, 2, 3, 9856, 28, (2, 1, 0, 0), 3),
    "3g.20gb": _profile(3, 4, 2, 19968, 42, (3, 2, 0, 0), 1),
    "4g.20gb": _profile(4, 4, 1, 19968, 56, (4, 2, 0, 0), 1),
    "7g.40gb": _profile(7, 8, 1, 40192, 98, (7, 5, 1, 1), 0),
}
_A100_80: Final = {
    "1g.10gb": _profile(1, 1, 7, 9728, 14, (1, 0, 0, 0), 7),
    "1g.10gb+me": _profile(1, 1, 1, 9728, 14, (1, 1, 1, 1), 7),
    "1g.20gb": _profile(1, 2, 4, 19968, 14, (1, 0, 0, 0), 3),
    "2g.20gb": _profile(2, 2, 3, 19968, 28, (2, 1, 0, 0), 3),
    "3g.40gb": _profile(3, 4, 2, 40192, 42, (3, 2, 0, 0), 1),
    "4g.40gb": _profile(4, 4, 1, 40192, 56, (4, 2, 0, 0), 1),
    "7g.80gb": _profile(7, 8, 1, 80896, 98, (7, 5, 1, 1), 0),
}
_H100_80: Final = {
    "1g.10gb": _profile(1, 1, 7, 9984, 16, (1, 1, 1, 0), 7),
    "1g.10gb+me": _profile(1, 1, 1, 9984, 16, (1, 1, 1, 1), 7),
    "1g.20gb": _profile(1, 2, 4, 20096, 26, (1, 1, 1, 0), 3),
    "2g.20gb": _profile(2, 2, 3, 20096, 32, (2, 2, 2, 0), 3),
    "3g.40gb": _profile(3, 4, 2, 40448, 60, (3, 3, 3, 0), 1),
    "4g.40gb": _profile(4, 4, 1, 40448, 64, (4, 4, 4, 0), 1),
    "7g.80gb": _profile(7, 8, 1, 80896, 132, (8, 7, 7, 1), 0),
}
_H200: Final = {
    "1g.18gb": _profile(1, 1, 7, 16384, 16, (1, 1, 1, 0), 7),
    "1g.18gb+me": _profile(1, 1, 1, 16384, 16, (1, 1, 1, 1), 7),
    "1g.35gb": _profile(1, 2, 4, 33280, 26, (1, 1, 1, 0), 3),
    "2g.35gb": _profile(2, 2, 3, 33280, 32, (2, 2, 2, 0), 3),
    "3g.71gb": _profile(3, 4, 2, 70656, 60, (3, 3, 3, 0), 1),
    "4g.71gb": _profile(4, 4, 1, 70656, 64, (4, 4, 4, 0), 1),
    "7g.141gb": _profile(7, 8, 1, 143360, 132, (8, 7, 7, 1), 0),
}


def _cc(text: str) -> ComputeCapability:
    major, minor = text.split(".")
    return ComputeCapability(major=int(major), minor=int(minor))


MODELS: Final = (
    Model("Tesla P100-PCIE-16GB", 16384, _cc("6.0"), {}, ("P100",)),
    Model("Tesla V100-SXM2-16GB", 16384, _cc("7.0"), {}, ("V100",)),
    Model("Tesla V100-SXM2-32GB", 32768, _cc("7.0"), {}),
    Model("Tesla T4", 15360, _cc("7.5"), {}),
    Model("NVIDIA A100-SXM4-40GB", 40960, _cc("8.0"), _A100_40, ("A100", "A100-40GB")),
    Model("NVIDIA A100-PCIE-40GB", 40960, _cc("8.0"), _A100_40, ("A100-PCIE",)),
    Model("NVIDIA A100-SXM4-80GB", 81920, _cc("8.0"), _A100_80, ("A100-80GB",)),
    Model("NVIDIA A100 80GB PCIe", 81920, _cc("8.0"), _A100_80, ("A100-PCIE-80GB",)),
    Model("NVIDIA A10", 23028, _cc("8.6"), {}),
    Model("NVIDIA A40", 46068, _cc("8.6"), {}),
    Model("NVIDIA L4", 23034, _cc("8.9"), {}),
    Model("NVIDIA L40S", 46068, _cc("8.9"), {}),
    Model("NVIDIA H100 80GB HBM3", 81559, _cc("9.0"), _H100_80, ("H100", "H100-80GB", "H100-SXM5-80GB")),
    Model("NVIDIA H100 PCIe", 81559, _cc("9.0"), _H100_80),
    Model("NVIDIA H200", 143771, _cc("9.0"), _H200),
)


def find_model(name: str) -> Model | None:
    """A model by any of its names; `Tesla-T4`, `T4`, `tesla t4` and `nvidia-t4` are the same."""
    return _BY_NAME.get(plain_name(name))


def plain_name(name: str) -> str:
    """What is left of a name when spelling is taken away: `t4` of `Tesla-T4` as of `NVIDIA T4`."""
    return re.sub(r"[^a-z0-9]", "", re.sub(r"^(nvidia|tesla)[- ]", "", name.lower()))


_BY_NAME: Final = {plain_name(name): model for model in MODELS for name in (model.product, *model.aliases)}
