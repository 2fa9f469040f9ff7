"""The controller's command line."""

from pathlib import Path

import pytest

from gpushare.controller import options
from gpushare.controller.options import Options
from gpushare.domain.selectors import Selector
from gpushare.errors import UsageError


@pytest.mark.parametrize(
    ("argv", "environ", "expected"),
    [
        pytest.param([], {}, Options(), id="nothing given"),
        pytest.param(
            [],
            {
                "OPERATOR_NAMESPACE": "gpu-operator",
                "DEVICE_PLUGIN_IMAGE": "r/gpu-sharing-operator:1",
                "POD_NAME": "p",
                "POD_IP": "10.0.0.7",
            },
            Options(
                namespace="gpu-operator", image="r/gpu-sharing-operator:1", identity="p", metrics_address="10.0.0.7"
            ),
            id="as the chart starts it",
        ),
        pytest.param(
            ["--namespace", "other", "--policy=mine", "--leader-elect=false", "--kubeconfig", "k", "--context", "c"],
            {"OPERATOR_NAMESPACE": "gpu-operator"},
            Options(namespace="other", policy="mine", leader_elect=False, kubeconfig=Path("k"), context="c"),
            id="flags win",
        ),
        pytest.param(
            ["--metrics-port", "8080", "--resync-seconds=60", "--log-level", "debug"],
            {},
            Options(metrics_port=8080, resync_seconds=60.0, log_level="debug"),
            id="numbers",
        ),
        pytest.param(
            ["--canary=pool=canary,!spot", "--stop-on-refusal", "true"],
            {},
            Options(canary=Selector.parse("pool=canary,!spot"), stop_on_refusal=True),
            id="a brake",
        ),
        pytest.param(
            ["--hami-node-label=true", '--hami-node-settings={"slots": 20, "memoryScaling": 2}'],
            {},
            Options(hami_nodes=True, hami_keys={"slots": 20, "memoryScaling": 2}),
            id="HAMi's nodes, over-committed",
        ),
        pytest.param(
            [],
            {"ROLLOUT_CANARY": "pool=canary", "ROLLOUT_STOP_ON_REFUSAL": "true"},
            Options(canary=Selector.parse("pool=canary"), stop_on_refusal=True),
            id="a brake from the environment",
        ),
        pytest.param(
            ["--canary=", "--stop-on-refusal=false"],
            {"ROLLOUT_CANARY": "pool=canary", "ROLLOUT_STOP_ON_REFUSAL": "true"},
            Options(),
            id="no brake after all",
        ),
        pytest.param(["--metrics-address="], {"POD_IP": "10.0.0.7"}, Options(), id="on all addresses after all"),
        pytest.param(
            ["--webhook-port=8443", "--webhook-secret=theirs"],
            {},
            Options(webhook_port=8443, webhook_secret="theirs"),
            id="a webhook",
        ),
    ],
)
def test_parse(argv: list[str], environ: dict[str, str], expected: Options) -> None:
    """Flags before environment before defaults."""
    assert expected == options.parse(argv, environ)


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        pytest.param(["--polcy", "x"], "--polcy", id="unknown flag"),
        pytest.param(["--pol", "x"], "--pol", id="abbreviated flag"),
        pytest.param(["x"], "unrecognized arguments: x", id="an argument"),
        pytest.param(["--policy"], "expected one argument", id="no value"),
        pytest.param(["--metrics-port", "http"], "invalid int value: 'http'", id="no number"),
        pytest.param(["--metrics-port", "70000"], "--metrics-port 70000: expected", id="no port"),
        pytest.param(["--webhook-port", "-1"], "--webhook-port -1: expected", id="no port of a webhook"),
        pytest.param(["--resync-seconds", "0"], "--resync-seconds 0: expected", id="no time"),
        pytest.param(["--resync-seconds", "nan"], "--resync-seconds nan: expected", id="no number"),
        pytest.param(["--canary", "pool in (a)"], "--canary: .pool in .a..: expected labels such as", id="no selector"),
        pytest.param(["--stop-on-refusal", "yes"], "invalid choice: 'yes'", id="neither true nor false"),
        pytest.param(["--leader-elect", "yes"], "invalid choice: 'yes'", id="no choice"),
        pytest.param(["--hami-node-settings", "{"], "--hami-node-settings {: expected JSON, such as", id="no JSON"),
        pytest.param(
            ["--hami-node-settings", '{"slot": 1}'], "--hami-node-settings: gpushare.slot .*unknown key", id="no key"
        ),
        pytest.param(["--hami-node-settings", '{"fractions": "aliyun"}'], "other than fractions", id="another dialect"),
        pytest.param(["--namespace", "Not_One"], "namespace 'Not_One': expected", id="no namespace"),
    ],
)
def test_refused(argv: list[str], message: str) -> None:
    """What cannot be is named, never guessed; nothing is printed and nothing exits."""
    with pytest.raises(UsageError, match=message):
        options.parse(argv, {})


def test_help() -> None:
    """The help names every option."""
    assert "--policy NAME" in options.help_text()


def test_environment_is_refused_by_its_name() -> None:
    """Who set a variable of the Deployment looks for that."""
    with pytest.raises(UsageError, match="ROLLOUT_STOP_ON_REFUSAL: 'yes': expected true or false"):
        options.parse([], {"ROLLOUT_STOP_ON_REFUSAL": "yes"})
    with pytest.raises(UsageError, match="ROLLOUT_CANARY: 'a b': expected labels"):
        options.parse([], {"ROLLOUT_CANARY": "a b"})
