"""Command line, policy and text, weighed against each other."""

from __future__ import annotations

from pathlib import Path

import pytest

from gpushare.agent.options import AgentOptions, parse
from gpushare.agent.settings import find_missing_channels, read_response_options, settle
from gpushare.api.sharing import Flags, IdStrategy, Imex, ListStrategy, PluginFlags, SharingConfig
from gpushare.domain.devices import MigStrategy
from gpushare.domain.pools import Allocation
from gpushare.host.files import HostFiles
from gpushare.sharing.responses import ResponseOptions
from support.driver_roots import install_driver


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
    ("said", "text", "expected"),
    [
        pytest.param(None, None, {"envvar"}, id="default"),
        pytest.param(None, ("volume-mounts",), {"volume-mounts"}, id="the text"),
        pytest.param(("cdi-annotations", "cdi-cri"), ("envvar",), {"cdi-annotations", "cdi-cri"}, id="the flag"),
    ],
)
def test_list_strategies(said: tuple[str, ...] | None, text: tuple[str, ...] | None, expected: set[str]) -> None:
    """Flag, then text; the policy has said it by a variable."""

    def flags(words: tuple[str, ...] | None) -> Flags:
        return Flags(plugin=PluginFlags(device_list_strategy=tuple(map(ListStrategy, words)) if words else None))

    settings = settle(AgentOptions(flags=flags(said)), SharingConfig(flags=flags(text)), "")

    assert settings.list_strategies == expected


def test_response_options(tmp_path: Path) -> None:
    """Everything that an answer depends on."""
    (tmp_path / "dev/nvidia-caps-imex-channels").mkdir(parents=True)
    (tmp_path / "dev/nvidiactl").touch()
    (tmp_path / "dev/nvidia-caps-imex-channels/channel0").touch()
    argv = ["--pass-device-specs", "--driver-root=/r", "--device-id-strategy=index", "--cdi-annotation-prefix=p/"]
    settings = settle(parse([*argv, "--gds-enabled", "--imex-channel-ids=0"], {}), SharingConfig(), "")

    options = read_response_options(settings, HostFiles(tmp_path))

    assert find_missing_channels(settings, options) == ()
    assert options == ResponseOptions(
        pass_device_specs=True,
        control_devices=("/dev/nvidiactl",),
        dev_root="/r",
        id_strategy=IdStrategy.INDEX,
        cdi_annotation_prefix="p/",
        imex_channels=(0,),
        features=frozenset({"gds"}),
    )


@pytest.mark.parametrize(
    ("required", "saying"),
    [
        pytest.param(False, "channel 0 has no device node on this host, so containers do not get it", id="wished for"),
        pytest.param(True, "channel 0 is required and has no device node on this host; create it, or", id="required"),
    ],
)
def test_missing_channel(tmp_path: Path, *, required: bool, saying: str) -> None:
    """Left out, and said in either case."""
    settings = settle(AgentOptions(), SharingConfig(imex=Imex(channel_ids=(0,), required=required)), "")

    options = read_response_options(settings, HostFiles(tmp_path))

    assert options.imex_channels == ()
    (problem,) = find_missing_channels(settings, options)
    assert problem.path == "imex.channelIDs"
    assert problem.message.startswith(saying)


def test_driver_of_the_host(tmp_path: Path) -> None:
    """Device nodes are where the host has them, although the driver is said to have a root of its own."""
    install_driver(tmp_path / "host")
    (tmp_path / "host/dev").mkdir()
    (tmp_path / "host/dev/nvidiactl").touch()
    settings = settle(parse(["--driver-root=/run/nvidia/driver"], {}), SharingConfig(), "")

    options = read_response_options(settings, HostFiles(tmp_path))

    assert (options.dev_root, options.control_devices) == ("/", ("/dev/nvidiactl",))
