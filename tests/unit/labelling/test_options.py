"""The command line and environment of `gpushare labels`, and what is in force beside a configuration."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import pytest

from gpushare.api.parsing import parse_sharing
from gpushare.api.sharing import DiscoveryFlags, Flags, PluginFlags
from gpushare.domain.devices import MigStrategy
from gpushare.errors import UsageError
from gpushare.labelling.options import (
    MACHINE_TYPE_FILE,
    OUTPUT_FILE,
    LabelOptions,
    LabelSettings,
    parse,
    settle,
    usage,
)

DEFAULTS = LabelSettings(
    mig_strategy=MigStrategy.NONE,
    fails_without_driver=True,
    oneshot=False,
    has_timestamp=True,
    sleep_seconds=60.0,
    output_file=OUTPUT_FILE,
    machine_type_file=MACHINE_TYPE_FILE,
    uses_node_feature=True,
)


def gfd(**fields: Any) -> LabelOptions:
    return LabelOptions(flags=Flags(gfd=DiscoveryFlags(**fields)))


def flags(**fields: Any) -> LabelOptions:
    return LabelOptions(flags=Flags(**fields))


@pytest.mark.parametrize(
    ("argv", "environ", "expected"),
    [
        pytest.param([], {}, LabelOptions(), id="nothing"),
        pytest.param(["--oneshot", "--no-timestamp"], {}, gfd(oneshot=True, no_timestamp=True), id="switches"),
        pytest.param(["--oneshot=false"], {"GFD_ONESHOT": "true"}, gfd(oneshot=False), id="flag first"),
        pytest.param(["-o", "/x"], {}, gfd(output_file="/x"), id="-o"),
        pytest.param(["--output=/x"], {}, gfd(output_file="/x"), id="--output"),
        pytest.param(["--output-file="], {}, gfd(output_file=""), id="standard output"),
        pytest.param([], {"GFD_MACHINE_TYPE_FILE": ""}, gfd(machine_type_file=""), id="empty is said"),
        pytest.param(["--sleep-interval=1h5m"], {}, gfd(sleep_interval=3900.0), id="duration"),
        pytest.param([], {"GFD_SLEEP_INTERVAL": "infinite"}, gfd(sleep_interval=math.inf), id="infinite"),
        pytest.param(
            [],
            {"MIG_STRATEGY": "single", "GFD_MIG_STRATEGY": "mixed"},
            flags(mig_strategy=MigStrategy.MIXED),
            id="own variable first",
        ),
        pytest.param([], {"FAIL_ON_INIT_ERROR": ""}, flags(fail_on_init_error=False), id="empty is false"),
        pytest.param(["--use-node-feature-api=false"], {}, flags(use_node_feature_api=False), id="file"),
        pytest.param([], {"USE_NODE_FEATURE_API": "0"}, flags(use_node_feature_api=False), id="file by variable"),
        pytest.param(
            ["--driver-root-ctr-path=/d"], {}, flags(plugin=PluginFlags(container_driver_root="/d")), id="driver root"
        ),
        pytest.param(
            ["--kubeconfig=/k", "--kube-api-qps=5.5", "--kube-api-burst=10", "--namespace=nfd", "--node-name=n"],
            {"POD_NAME": "p", "NODE_NAME": "other", "CONFIG_FILE": "/c", "GFD_CONFIG_FILE": "/g"},
            LabelOptions(kubeconfig="/k", namespace="nfd", node_name="n", pod_name="p", config_file="/g"),
            id="cluster",
        ),
    ],
)
def test_parse(argv: list[str], environ: dict[str, str], expected: LabelOptions) -> None:
    """The flags, variables and order of GPU feature discovery."""
    assert parse(argv, environ) == expected


@pytest.mark.parametrize(
    ("argv", "environ", "text"),
    [
        pytest.param(["--no-such-flag"], {}, "unknown flag '--no-such-flag'", id="unknown"),
        pytest.param(["labels"], {}, "unknown argument 'labels'", id="argument"),
        pytest.param(["--pass-device-specs"], {}, "unknown flag", id="the plugin's"),
        pytest.param(["--mig-strategy=all"], {}, "--mig-strategy: 'all' is none of none, single, mixed", id="strategy"),
        pytest.param([], {"MIG_STRATEGY": ""}, "MIG_STRATEGY: '' is none of", id="empty strategy"),
        pytest.param([], {"GFD_SLEEP_INTERVAL": "60"}, "GFD_SLEEP_INTERVAL: not a duration", id="no unit"),
        pytest.param(["--sleep-interval=-1s"], {}, "--sleep-interval: a negative", id="negative"),
        pytest.param(["--oneshot=maybe"], {}, "--oneshot: 'maybe' is neither true nor false", id="no bool"),
        pytest.param(["--kube-api-qps=many"], {}, "--kube-api-qps: 'many' is no number", id="no number"),
        pytest.param(["--output-file"], {}, "--output-file: a value is missing", id="nothing after it"),
    ],
)
def test_wrong_usage(argv: list[str], environ: dict[str, str], text: str) -> None:
    """What cannot be is named, with the place."""
    with pytest.raises(UsageError) as error:
        parse(argv, environ)

    assert text in str(error.value)


@pytest.mark.parametrize(
    ("argv", "text", "expected"),
    [
        pytest.param([], "", DEFAULTS, id="defaults"),
        pytest.param(
            [],
            "flags: {migStrategy: mixed, failOnInitError: false, useNodeFeatureAPI: false, gfd: {oneshot: true, "
            'noTimestamp: true, sleepInterval: infinite, outputFile: "", machineTypeFile: /m}}',
            LabelSettings(
                mig_strategy=MigStrategy.MIXED,
                fails_without_driver=False,
                oneshot=True,
                has_timestamp=False,
                sleep_seconds=math.inf,
                output_file="",
                machine_type_file="/m",
                uses_node_feature=False,
            ),
            id="text",
        ),
        pytest.param(
            ["--sleep-interval=0s", "--mig-strategy=none", "--no-timestamp=false", "--output-file=/o"],
            "flags: {migStrategy: mixed, gfd: {sleepInterval: 5s, noTimestamp: true, outputFile: /t}}",
            replace(DEFAULTS, sleep_seconds=0.0, output_file="/o"),
            id="flags first",
        ),
    ],
)
def test_settle(argv: list[str], text: str, expected: LabelSettings) -> None:
    """What was said, then the text, then the default."""
    config = parse_sharing(text).config
    assert config is not None

    assert settle(parse(argv, {}), config.flags) == expected


def test_usage() -> None:
    """Every flag with its variables."""
    text = usage()

    assert text.startswith("usage: gpushare labels [flags]")
    assert "--output-file, --output, -o VALUE" in text
    assert "--mig-strategy VALUE (GFD_MIG_STRATEGY, MIG_STRATEGY)\n      how MIG devices are offered" in text
