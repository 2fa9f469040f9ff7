"""The command line of `gpushare mps`."""

from __future__ import annotations

import pytest

from gpushare.api.flags import Flag
from gpushare.domain.devices import MigStrategy
from gpushare.errors import UsageError
from gpushare.mps.options import FLAGS, MpsOptions, parse, usage


@pytest.mark.parametrize(
    ("argv", "environ", "expected"),
    [
        pytest.param([], {}, MpsOptions(), id="nothing said"),
        pytest.param(["mount-shm"], {}, MpsOptions(mounts_only=True), id="subcommand"),
        pytest.param(
            ["--config-file", "/c", "--mig-strategy=none"],
            {},
            MpsOptions(config_file="/c", mig_strategy=MigStrategy.NONE),
            id="flags",
        ),
        pytest.param(
            [],
            {
                "CONFIG_FILE": "/c",
                "NODE_NAME": "n",
                "METRICS_PORT": "9400",
                "POD_IP": "10.0.0.1",
                "MIG_STRATEGY": "single",
            },
            MpsOptions(
                config_file="/c",
                node_name="n",
                metrics_port=9400,
                metrics_address="10.0.0.1",
                mig_strategy=MigStrategy.SINGLE,
            ),
            id="variables",
        ),
        pytest.param(
            ["--driver-root-ctr-path=/d"], {"DRIVER_ROOT_CTR_PATH": "/e"}, MpsOptions(driver_root="/d"), id="flag first"
        ),
    ],
)
def test_parse(argv: list[str], environ: dict[str, str], expected: MpsOptions) -> None:
    """Flags beat variables."""
    assert parse(argv, environ) == expected
    assert parse(tuple(argv), environ) == expected


@pytest.mark.parametrize(
    ("argv", "says"),
    [
        pytest.param(["--bogus"], "unknown flag '--bogus'", id="flag"),
        pytest.param(["mount"], "unknown argument 'mount'", id="subcommand"),
        pytest.param(["mount-shm", "x"], "unknown argument 'x'", id="more than the subcommand"),
        pytest.param(["--mig-strategy", "half"], "'half' is none of none, single, mixed", id="strategy"),
        pytest.param(["--metrics-port", "x"], "'x' is no port number", id="port"),
    ],
)
def test_refuses(argv: list[str], says: str) -> None:
    """What nobody meant is never passed over."""
    with pytest.raises(UsageError, match=says):
        parse(argv, {})


def test_usage() -> None:
    """Every flag with its variable, and the subcommand."""
    assert "--config-file VALUE" in usage()
    assert "CONFIG_FILE" in usage()
    assert "gpushare mps mount-shm: mounts" in usage()


@pytest.mark.parametrize("flag", [pytest.param(flag, id=flag.names[0]) for flag in FLAGS])
def test_every_flag_is_explained(flag: Flag) -> None:
    """What it does, and what holds without it where that is not plain."""
    assert "default" in flag.help or flag.names[0] == "node-name"
