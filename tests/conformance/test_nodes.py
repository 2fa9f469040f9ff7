"""Every described node, read through the true driver bindings and a library of ours, and through the simulated driver."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from pathlib import Path

import pytest

from gpushare.agent.discovery import read_inventory
from gpushare.nvml.port import Nvml
from gpushare.nvml.real import RealNvml
from support.described_nodes import build_machine, build_nvml
from support.nvml_library import plugged_in, write_stub
from support.recorded_cases import DATA, read_cases


def _nodes() -> Iterator[tuple[str, str]]:
    for path in sorted((DATA / "nodes").glob("*.conf")):
        yield path.stem, path.read_text()
    for case in (*read_cases("labels"), *read_cases("plugin")):
        yield case.name, case.body["node"]
    # Beyond what was recorded: every model, many GPUs, every kind of layout.
    yield "h200", "cuda 13000\ngpu H200 mig=on\nmig 0 1g.18gb 3\nmig 0 3g.71gb\ngpus 2 H200\n"
    yield "many", "gpus 16 L40S numa=0\ngpus 4 A100-80GB numa=1 mig=on\nmig 17 1g.10gb+me\nmig 17 2g.20gb 2\n"
    yield "older", "gpu V100 board=1\ngpu V100 board=1\ngpu P100 minor=9\nnvlink 0 1 6\n"


DIFFERENT = {text: name for name, text in reversed(list(_nodes()))}


@pytest.mark.parametrize("node", [pytest.param(text, id=name) for text, name in DIFFERENT.items()])
def test_both_drivers_tell_the_same(node: str, tmp_path: Path) -> None:
    """The same inventory, the same distances and links: what is proved with the simulated driver holds for the real one."""
    machine, simulated = build_machine(node), build_nvml(node)
    with plugged_in(write_stub(tmp_path, node)):
        real = RealNvml()
        real.start()

        assert read_inventory(real, machine) == read_inventory(simulated, machine)
        assert connections_of(real) == connections_of(simulated)
        real.stop()


def connections_of(nvml: Nvml) -> object:
    indices = range(nvml.count())
    links = {index: sorted(nvml.nvlinks(index), key=str) for index in indices}
    return links, {pair: nvml.ancestor(*pair) for pair in product(indices, indices)}
