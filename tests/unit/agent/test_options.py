"""The agent's command line and environment."""

from __future__ import annotations

from enum import StrEnum
from typing import Any

import pytest

from gpushare.agent.options import AgentOptions, HealthChecks, parse, usage
from gpushare.api.agent_flags import FLAGS
from gpushare.api.flags import Flag
from gpushare.api.sharing import Flags, IdStrategy, ListStrategy, PluginFlags
from gpushare.domain.devices import MigStrategy
from gpushare.domain.pools import Allocation
from gpushare.errors import UsageError


def plugin(**fields: Any) -> AgentOptions:
    return AgentOptions(flags=Flags(plugin=PluginFlags(**fields)))


def flags(**fields: Any) -> AgentOptions:
    return AgentOptions(flags=Flags(**fields))


@pytest.mark.parametrize(
    ("argv", "environ", "expected"),
    [
        pytest.param([], {}, AgentOptions(), id="nothing"),
        pytest.param(["--mig-strategy=mixed"], {}, flags(mig_strategy=MigStrategy.MIXED), id="with ="),
        pytest.param(["--mig-strategy", "single"], {}, flags(mig_strategy=MigStrategy.SINGLE), id="with a space"),
        pytest.param(["-mig-strategy=none"], {}, flags(mig_strategy=MigStrategy.NONE), id="one dash"),
        pytest.param(
            ["--mig-strategy=none"], {"MIG_STRATEGY": "mixed"}, flags(mig_strategy=MigStrategy.NONE), id="flag first"
        ),
        pytest.param([], {"FAIL_ON_INIT_ERROR": ""}, flags(fail_on_init_error=False), id="empty is false"),
        pytest.param([], {"NVIDIA_DEV_ROOT": ""}, flags(nvidia_dev_root=""), id="empty is said"),
        pytest.param(["--pass-device-specs"], {}, plugin(pass_device_specs=True), id="switch"),
        pytest.param(["--pass-device-specs=F"], {}, plugin(pass_device_specs=False), id="switch off"),
        pytest.param(
            ["--device-list-strategy=envvar, cdi-cri", "--device-list-strategy", "volume-mounts"],
            {"DEVICE_LIST_STRATEGY": "cdi-annotations"},
            plugin(device_list_strategy=(ListStrategy.ENVVAR, ListStrategy.CDI_CRI, ListStrategy.VOLUME_MOUNTS)),
            id="repeated list",
        ),
        pytest.param(["--nvidia-driver-root=/r"], {}, flags(nvidia_driver_root="/r"), id="alias"),
        pytest.param(
            [],
            {"NVIDIA_CTK_PATH": "/b", "NVIDIA_CDI_HOOK_PATH": "/a"},
            plugin(nvidia_ctk_path="/a"),
            id="first variable",
        ),
        pytest.param([], {"NVIDIA_CTK_PATH": "/b"}, plugin(nvidia_ctk_path="/b"), id="second variable"),
        pytest.param(
            ["--device-id-strategy=index", "--shared-devices-allocation-policy=packed"],
            {},
            plugin(device_id_strategy=IdStrategy.INDEX, shared_devices_allocation_policy=Allocation.PACKED),
            id="choices",
        ),
        pytest.param(["--kubelet-socket", ""], {}, AgentOptions(kubelet_socket=""), id="never register"),
        pytest.param([], {"IMEX_CHANNEL_IDS": "0"}, AgentOptions(imex_channel_ids=(0,)), id="channel"),
        pytest.param([], {"IMEX_CHANNEL_IDS": ""}, AgentOptions(imex_channel_ids=()), id="no channel"),
        pytest.param(["--imex-required"], {}, AgentOptions(imex_required=True), id="required channel"),
        pytest.param(
            ["--config-file=/c", "--metrics-port=8080"],
            {"NODE_NAME": "n", "KUBECONFIG": "k"},
            AgentOptions(config_file="/c", metrics_port=8080, node_name="n", kubeconfig="k"),
            id="ours",
        ),
        pytest.param(
            ["--metrics-address=::1"],
            {"METRICS_PORT": "9409", "POD_IP": "10.0.0.7"},
            AgentOptions(metrics_port=9409, metrics_address="::1"),
            id="where metrics are",
        ),
        pytest.param(
            [],
            {"DP_DISABLE_HEALTHCHECKS": "all", "DP_ENABLE_HEALTHCHECKS": "79"},
            AgentOptions(health_checks=HealthChecks(disabled="all", enabled="79")),
            id="health checks",
        ),
        pytest.param(
            ["--cdi-disable-hooks=a,b"],
            {"CDI_FEATURE_FLAGS": "c"},
            AgentOptions(cdi_disable_hooks=("a", "b"), cdi_feature_flags=("c",)),
            id="cdi",
        ),
        pytest.param(["--device-discovery-strategy=nvml"], {}, flags(device_discovery_strategy="nvml"), id="discovery"),
    ],
)
def test_parse(argv: list[str], environ: dict[str, str], expected: AgentOptions) -> None:
    """Flag before variable; what nobody said stays open."""
    assert expected == parse(argv, environ)


@pytest.mark.parametrize(
    ("argv", "environ", "text"),
    [
        pytest.param(["--nonsense"], {}, "unknown flag '--nonsense'; see --help", id="unknown flag"),
        pytest.param(["nonsense"], {}, "unknown argument 'nonsense'; see --help", id="argument"),
        pytest.param(["--mig-strategy"], {}, "--mig-strategy: a value is missing", id="no value"),
        pytest.param([], {"MIG_STRATEGY": ""}, "MIG_STRATEGY: '' is none of none, single, mixed", id="empty word"),
        pytest.param([], {"DEVICE_LIST_STRATEGY": ""}, "DEVICE_LIST_STRATEGY: '' is none of envvar", id="empty list"),
        pytest.param([], {"PASS_DEVICE_SPECS": "yes"}, "'yes' is neither true nor false", id="no bool"),
        pytest.param(["--imex-channel-ids=1"], {}, "'1' is neither empty nor 0", id="channel"),
        pytest.param(["--metrics-port=99999"], {}, "'99999' is no port number", id="port"),
        pytest.param(["--device-discovery-strategy=tegra"], {}, "'tegra' is none of auto, nvml", id="discovery"),
    ],
)
def test_parse_refuses(argv: list[str], environ: dict[str, str], text: str) -> None:
    """The message names the place as it was written."""
    with pytest.raises(UsageError) as error:
        parse(argv, environ)
    assert text in str(error.value)


def test_usage() -> None:
    """Every flag is there with its variable, and says what it does and what holds without it."""
    text = usage()

    assert "  --driver-root, --nvidia-driver-root VALUE (NVIDIA_DRIVER_ROOT)\n      where the driver is" in text
    assert "  --pass-device-specs (PASS_DEVICE_SPECS)\n" in text
    assert "DP_DISABLE_HEALTHCHECKS" in text
    assert max(map(len, text.splitlines())) <= 140


@pytest.mark.parametrize("flag", [pytest.param(flag, id=flag.names[0]) for flag in FLAGS])
def test_every_flag_is_explained(flag: Flag) -> None:
    """What it does, and what holds without it where that is not plain."""
    assert "default" in flag.help or flag.names[0] in {"fail-on-init-error", "mps-root", "node-name"}


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("mig-strategy", MigStrategy),
        ("device-list-strategy", ListStrategy),
        ("device-id-strategy", IdStrategy),
        ("shared-devices-allocation-policy", Allocation),
    ],
)
def test_words_are_all_named(name: str, kind: type[StrEnum]) -> None:
    """A flag that takes some words only says which."""
    (flag,) = (flag for flag in FLAGS if name in flag.names)

    assert all(word in flag.help for word in kind)
