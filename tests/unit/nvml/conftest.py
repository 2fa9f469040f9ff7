"""A driver for the tests of the real door: each module says in NODE what the node is."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from gpushare.nvml.real import RealNvml
from support.nvml_library import Stub, plugged_in, write_stub


@pytest.fixture
def stub(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Stub]:
    """The node of the test's module, whose driver pynvml finds."""
    with plugged_in(write_stub(tmp_path, request.module.NODE)) as plugged:
        yield plugged


@pytest.fixture
def nvml(stub: Stub) -> Iterator[RealNvml]:
    """Started; stopped afterwards."""
    real = RealNvml()
    real.start()
    yield real
    real.stop()
