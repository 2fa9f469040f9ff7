"""The scheduler's command line, environment and settings file."""

from __future__ import annotations

import asyncio
import logging
from pathlib import Path

import pytest

from gpushare.errors import UsageError
from gpushare.placement.settings import RequestSettings
from gpushare.scheduler import app, options
from gpushare.scheduler.mutating import AdmissionSettings
from gpushare.scheduler.options import Options
from gpushare.scheduler.settings import read_settings, resources_of


def test_defaults() -> None:
    """Nothing is needed in a pod."""
    assert options.parse([], {}) == Options()


def test_environment_and_flags() -> None:
    """What the Deployment sets, and flags that win over it."""
    environ = {"OPERATOR_NAMESPACE": "gpu", "POD_NAME": "one", "POD_IP": "10.0.0.1"}
    found = options.parse(
        ["--port", "1", "--http-timeout", "10", "--leader-elect", "false", "--host", "a", "--host", "b"], environ
    )

    assert (found.namespace, found.name, found.address) == ("gpu", "one", "10.0.0.1")
    assert (found.port, found.http_timeout, found.leader_elect, found.hosts) == (1, 10.0, False, ("a", "b"))
    assert options.parse(["--namespace", "x", "--address", ""], environ).namespace == "x"


@pytest.mark.parametrize(
    ("argv", "says"),
    [
        pytest.param(["--prot", "1"], "unrecognized arguments: --prot", id="unknown flag"),
        pytest.param(["--port", "70000"], "--port 70000: expected a number from 0 to 65535", id="no port"),
        pytest.param(["--metrics-port", "-1"], "--metrics-port -1: expected", id="no port for metrics"),
        pytest.param(["--http-timeout", "2"], "expected at least 5 seconds", id="no time to wait"),
    ],
)
def test_refused(argv: list[str], says: str) -> None:
    """Says which flag, and what it takes."""
    with pytest.raises(UsageError, match=says):
        options.parse(argv, {})


def test_help_lists_every_flag() -> None:
    """And where its default comes from."""
    text = options.help_text()

    assert "--settings FILE" in text
    assert "$POD_IP" in text


def test_settings() -> None:
    """In the names that HAMi's device configuration has for them."""
    text = """
        resourceMemoryName: example.com/mem
        memoryFactor: 10
        defaultMemory: 100
        defaultCores: 5
        defaultGPUNum: 2
        claimPlainGPU: true
        nodePolicy: spread
        runtimeClassName: nvidia
        gpuCorePolicy: force
        overwriteEnv: true
        allowedEnv: [CUDA_DISABLE_CONTROL]
        forceSchedulerName: false
    """
    found = read_settings(text)

    assert found.requests.memory == "example.com/mem"
    assert (found.requests.memory_factor, found.requests.default_memory, found.requests.default_count) == (10, 100, 2)
    assert (found.runtime_class, found.core_policy, found.hide_gpus) == ("nvidia", "force", True)
    assert (found.force_scheduler, found.allowed_env) == (False, {"CUDA_DISABLE_CONTROL"})
    assert "example.com/mem" in resources_of(found.requests)
    assert read_settings("") == AdmissionSettings()


@pytest.mark.parametrize(
    ("text", "says"),
    [
        pytest.param("claimPlainGpu: true", "unknown key 'claimPlainGpu'; did you mean 'claimPlainGPU'", id="typo"),
        pytest.param("xyz: 1", "unknown key 'xyz'; there are", id="unknown"),
        pytest.param("- a", "expected keys and values", id="a list"),
        pytest.param("defaultCores: 101", "defaultCores: 101: expected a percentage", id="over 100"),
        pytest.param("defaultMemory: -1", "expected a whole number, 0 or more", id="negative"),
        pytest.param("memoryFactor: 0", "1 or more", id="factor 0"),
        pytest.param("claimPlainGPU: 1", "expected true or false", id="no flag"),
        pytest.param("nodePolicy: tight", "expected binpack or spread", id="no policy"),
        pytest.param("gpuCorePolicy: never", "expected one of default, force, disable", id="no rule"),
        pytest.param("allowedEnv: A", "expected a list of names", id="no list"),
        pytest.param("runtimeClassName: 1", "expected a text", id="no text"),
        pytest.param("a: [", "--settings: ", id="no YAML"),
    ],
)
def test_settings_refused(text: str, says: str) -> None:
    """With place, value and what it should be."""
    with pytest.raises(UsageError, match=says):
        read_settings(text)


def test_all_names_of_resources() -> None:
    """By which pods are found in the watch."""
    assert resources_of(RequestSettings()) == {
        "nvidia.com/gpu",
        "nvidia.com/gpumem",
        "nvidia.com/gpumem-percentage",
        "nvidia.com/gpucores",
        "nvidia.com/priority",
        "aliyun.com/gpu-mem",
        "aliyun.com/gpu-core.percentage",
    }


@pytest.mark.parametrize(
    "argv",
    [
        pytest.param(["--bad"], id="flag"),
        pytest.param(["--settings", "none.yaml", "--kubeconfig", "x"], id="no such settings"),
        pytest.param(["--kubeconfig", "none.yaml"], id="no such kubeconfig"),
        pytest.param([], id="neither pod nor kubeconfig"),
    ],
)
async def test_wrong_usage_ends_with_2(argv: list[str], tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Said in the log; nothing is started."""
    code = await app.run(argv, {}, root=tmp_path, log=logging.getLogger("test"), stop=asyncio.Event())

    assert code == 2
    assert "wrong usage" in caplog.text
