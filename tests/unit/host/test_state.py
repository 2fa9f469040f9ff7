"""What an agent remembers."""

from __future__ import annotations

import json
import logging
import math
from pathlib import Path

import pytest

from gpushare import __version__
from gpushare.api.sharing import (
    DeviceSelection,
    DiscoveryFlags,
    Extension,
    Flags,
    Imex,
    ListStrategy,
    OnShrink,
    PluginFlags,
    SharedResource,
    SharingConfig,
)
from gpushare.domain.devices import MigStrategy
from gpushare.domain.pools import Allocation, Strategy
from gpushare.domain.troubles import Cause, Trouble
from gpushare.host import values
from gpushare.host.state import LastGood, State, StateFile
from support.inventories import gpu, split_gpu

LOG = logging.getLogger("test")
CONFIG = SharingConfig(
    strategy=Strategy.TIME_SLICING,
    resources=(
        SharedResource(
            path="sharing.timeSlicing.resources[0]",
            name="nvidia.com/gpu",
            replicas=4,
            offered_as="nvidia.com/gpu.shared",
            devices=DeviceSelection(refs=("0", "GPU-1")),
        ),
    ),
    fail_requests_greater_than_one=True,
    flags=Flags(
        mig_strategy=MigStrategy.MIXED,
        plugin=PluginFlags(device_list_strategy=(ListStrategy.ENVVAR,), pass_device_specs=False),
        gfd=DiscoveryFlags(sleep_interval=math.inf),
    ),
    imex=Imex(channel_ids=(0,)),
    extension=Extension(on_shrink=OnShrink.REFUSE, allocation=Allocation.PACKED),
)
STATE = State(
    last_good=LastGood(content="text", mig_strategy="mixed", config=CONFIG),
    resources=("nvidia.com/gpu", "nvidia.com/x"),
    troubles=(
        Trouble(
            gpu="GPU-0", mig="MIG-0", cause=Cause.HARDWARE, reason="XID 79", since="2026", driver_load="7", relapses=2
        ),
        Trouble(gpu="GPU-1", cause=Cause.LOST, reason="is lost", since="2026"),
    ),
    gpus=(gpu(0), split_gpu(1, "1g.5gb")),
)


@pytest.mark.parametrize("state", [pytest.param(State(), id="empty"), pytest.param(STATE, id="whole")])
def test_write_and_read(tmp_path: Path, state: State) -> None:
    """Nothing is lost on the way through the disk."""
    StateFile(tmp_path / "s/state.json", LOG).write(state)

    assert state == StateFile(tmp_path / "s/state.json", LOG).read()


def test_nothing_there(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """A first start is no accident."""
    assert StateFile(tmp_path / "state.json", LOG).read() == State()
    assert caplog.messages == []


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("", id="empty"),
        pytest.param("[]", id="list"),
        pytest.param("{", id="cut off"),
        pytest.param('{"resources": 3}', id="wrong type"),
        pytest.param('{"resources": [3]}', id="wrong items"),
        pytest.param('{"last_good": {"content": "x"}}', id="half"),
        pytest.param('{"last_good": "x"}', id="no fields"),
        pytest.param(
            '{"troubles": [{"gpu": "GPU-0", "cause": "spite", "reason": "", "since": ""}]}', id="unknown cause"
        ),
        pytest.param(
            f'{{"version": "{__version__}", "last_good":'
            '{"content": "", "mig_strategy": "", "config": {"strategy": "no"}}}',
            id="unknown word",
        ),
    ],
)
def test_damage(tmp_path: Path, text: str, caplog: pytest.LogCaptureFixture) -> None:
    """A warning and a fresh start."""
    path = tmp_path / "state.json"
    path.write_text(text)

    assert StateFile(path, LOG).read() == State()
    assert caplog.messages == ["state file unusable: starting afresh"]


def test_other_version_has_the_text_read_again(tmp_path: Path) -> None:
    """What a text means may have changed; what was in force has not."""
    path = tmp_path / "state.json"
    StateFile(path, LOG).write(STATE)
    path.write_text(json.dumps({**json.loads(path.read_text()), "version": "0.0.0"}))

    read = StateFile(path, LOG).read()

    assert read.last_good == LastGood(content="text", mig_strategy="mixed", config=None)
    assert read.resources == STATE.resources


def test_newer_version_knows_more(tmp_path: Path) -> None:
    """Who goes back to an older version loses only what that one does not know."""
    path = tmp_path / "state.json"
    path.write_text('{"version": "99.0.0", "resources": ["nvidia.com/gpu"], "moods": {"GPU-0": "sad"}}')

    assert StateFile(path, LOG).read() == State(resources=("nvidia.com/gpu",))


def test_same_state_is_not_written_again(tmp_path: Path) -> None:
    """Disks of nodes wear out."""
    path = tmp_path / "state.json"
    file = StateFile(path, LOG)
    file.write(STATE)
    path.unlink()

    file.write(STATE)

    assert not path.exists()


def test_unwritable(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """A warning, once; the agent goes on, and what could not be written is, as soon as it can be."""
    blocked = tmp_path / "file"
    blocked.touch()
    file = StateFile(blocked / "state.json", LOG)

    file.write(STATE)
    file.write(STATE)
    assert file.is_behind
    assert caplog.messages == ["state file cannot be written"]

    blocked.unlink()
    file.write(STATE)
    assert not file.is_behind
    assert StateFile(blocked / "state.json", LOG).read() == STATE


def test_mappings() -> None:
    """Encoded with their keys as text."""
    assert values.encode({1: (Strategy.MPS,)}) == {"1": ["mps"]}
