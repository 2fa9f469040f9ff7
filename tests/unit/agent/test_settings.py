"""Command line, policy and text, weighed against each other."""

from __future__ import annotations

from pathlib import Path

import pytest

from gpushare.agent.options import AgentOptions, parse
from gpushare.agent.settings import read_response_options, settle
from gpushare.api.sharing import Flags, IdStrategy, Imex, ListStrategy, PluginFlags, SharingConfig
from gpushare.domain.devices import MigStrategy
from gpushare.domain.pools import Allocation
from gpushare.host.files import HostFiles
from gpushare.sharing.responses import ResponseOptions


@pytest.mark.parametrize(
    ("argv", "policy", "text", "expected"),
    [
        pytest.param([], "", None, MigStrategy.NONE, id="nobody"),
        pytest.param([], "", MigStrategy.MIXED, MigStrategy.MIXED, id="the text"),
        pytest.param([], "single", MigStrategy.MIXED, MigStrategy.SINGLE, id="the policy"),
        pytest.param(["--mig-strategy=none"], "single", MigStrategy.MIXED, MigStrategy.NONE, id="the flag"),
        pytest.param([], "nonsense", MigStrategy.MIXED, MigStrategy.MIXED, id="a word that is none"),
    ],
)
def test_mig_strategy(argv: list[str], policy: str, text: MigStrategy | None, expected: MigStrategy) -> None:
    """Flag, then policy, then text."""
    settings = settle(parse(argv, {}), SharingConfig(flags=Flags(mig_strategy=text)), policy)

    assert expected == settings.mig_strategy == settings.config.flags.mig_strategy


def test_flags_beat_the_text() -> None:
    """Each by itself; what was not said comes from the text."""
    options = parse(["--shared-devices-allocation-policy=packed", "--mps-root=/m"], {"PASS_DEVICE_SPECS": ""})
    text = Flags(
        mps_root="/t",
        nvidia_driver_root="/d",
        plugin=PluginFlags(pass_device_specs=True, device_id_strategy=IdStrategy.INDEX),
    )

    config = settle(options, SharingConfig(flags=text), "").config

    assert config.allocation is Allocation.PACKED
    assert (config.flags.mps_root, config.flags.nvidia_driver_root) == ("/m", "/d")
    assert config.flags.plugin.pass_device_specs is False
    assert config.flags.plugin.device_id_strategy is IdStrategy.INDEX


@pytest.mark.parametrize(
    ("said", "text", "served", "problems", "warnings"),
    [
        pytest.param(None, None, {"envvar"}, 0, 0, id="default"),
        pytest.param(None, ("volume-mounts",), {"volume-mounts"}, 0, 0, id="served"),
        pytest.param(None, ("cdi-cri", "envvar"), {"envvar"}, 1, 0, id="text asks too much"),
        pytest.param(("cdi-annotations", "cdi-cri"), None, {"envvar"}, 0, 2, id="command line asks too much"),
    ],
)
def test_list_strategies(
    said: tuple[str, ...] | None, text: tuple[str, ...] | None, served: set[str], problems: int, warnings: int
) -> None:
    """What is not served yet is a problem of the text, and a warning where the command line says it."""

    def flags(words: tuple[str, ...] | None) -> Flags:
        return Flags(plugin=PluginFlags(device_list_strategy=tuple(map(ListStrategy, words)) if words else None))

    settings = settle(AgentOptions(flags=flags(said)), SharingConfig(flags=flags(text)), "")

    assert settings.list_strategies == served
    assert (len(settings.problems), len(settings.warnings)) == (problems, warnings)


def test_response_options(tmp_path: Path) -> None:
    """Everything that an answer depends on."""
    (tmp_path / "dev/nvidia-caps-imex-channels").mkdir(parents=True)
    (tmp_path / "dev/nvidiactl").touch()
    (tmp_path / "dev/nvidia-caps-imex-channels/channel0").touch()
    argv = ["--pass-device-specs", "--driver-root=/r", "--device-id-strategy=index", "--cdi-annotation-prefix=p/"]
    settings = settle(parse([*argv, "--gds-enabled", "--imex-channel-ids=0"], {}), SharingConfig(), "")

    options, problems = read_response_options(settings, HostFiles(tmp_path))

    assert problems == ()
    assert options == ResponseOptions(
        pass_device_specs=True,
        control_devices=("/dev/nvidiactl",),
        dev_root="/r",
        id_strategy=IdStrategy.INDEX,
        cdi_annotation_prefix="p/",
        imex_channels=(0,),
        features=frozenset({"gds"}),
    )


@pytest.mark.parametrize("required", [False, True])
def test_missing_channel(tmp_path: Path, *, required: bool) -> None:
    """Left out, or refused where it is required."""
    settings = settle(AgentOptions(), SharingConfig(imex=Imex(channel_ids=(0,), required=required)), "")

    options, problems = read_response_options(settings, HostFiles(tmp_path))

    assert options.imex_channels == ()
    assert [problem.path for problem in problems] == (["imex.channelIDs"] if required else [])
