"""ClusterPolicy as people write it."""

from __future__ import annotations

from typing import Any

import pytest
import yaml

from gpushare import data
from gpushare.api import clusterpolicy
from gpushare.api.clusterpolicy import ClusterPolicy, parse_policy


def parsed(**spec: Any) -> ClusterPolicy:
    result = parse_policy({"spec": {"devicePlugin": {}, **spec}})
    assert result.policy is not None, result.problems
    return result.policy


def test_nulls_and_strangers() -> None:
    """A null is nothing, and what is not known here is not our business."""
    policy = parsed(
        mig=None, devicePlugin={"config": None, "env": None, "args": None, "new": 1}, validator={"plugin": None}, psp={}
    )

    assert policy == parsed()


def test_empty_is_nothing() -> None:
    """Who clears a field gets its default back, as from a program in Go."""
    cleared = {"hostPaths": {"driverInstallDir": "", "kubeletRootDir": "", "rootFS": ""}, "operator": {"runtimeClass": ""},
               "toolkit": {"installDir": ""}, "devicePlugin": {"mps": {"root": ""}}}  # fmt: skip

    assert parsed(**cleared) == parsed()


@pytest.mark.parametrize(
    ("manifest", "path", "text"),
    [
        pytest.param({}, "spec", "is missing", id="no spec"),
        pytest.param({"spec": None}, "spec", "nothing is changed", id="spec is null"),
        pytest.param({"spec": {}}, "spec.devicePlugin", "is missing", id="no devicePlugin"),
        pytest.param({"spec": {"devicePlugin": None}}, "spec.devicePlugin", "is missing", id="devicePlugin is null"),
        pytest.param({"spec": []}, "spec", "expected an object, found []", id="spec is a list"),
        pytest.param(
            {"spec": {"devicePlugin": {"enabled": "perhaps"}}}, "spec.devicePlugin.enabled",
            "expected true or false, found 'perhaps'", id="no boolean",
        ),
        pytest.param(
            {"spec": {"devicePlugin": {"enabled": "yes"}}}, "spec.devicePlugin.enabled",
            "expected true or false, found 'yes'", id="a text is no boolean",
        ),
        pytest.param(
            {"spec": {"devicePlugin": {"resources": {"limits": {"cpu": None}}}}}, "spec.devicePlugin.resources.limits.cpu",
            "expected a text, found null", id="no amount",
        ),
        pytest.param(
            {"spec": {"devicePlugin": {"env": [{"value": "x"}]}}}, "spec.devicePlugin.env[0].name", "is missing", id="no name",
        ),
        pytest.param(
            {"spec": {"devicePlugin": {}, "mig": {"strategy": "some"}}}, "spec.mig.strategy",
            "expected one of none, single, mixed, found 'some'", id="no such strategy",
        ),
        pytest.param(
            {"spec": {"devicePlugin": {}, "daemonsets": {"labels": ["a"]}}}, "spec.daemonsets.labels",
            "expected an object", id="no object",
        ),
        pytest.param(
            {"spec": {"devicePlugin": {}, "cdi": {"nriPluginEnabled": True}, "toolkit": {"enabled": False}}},
            "spec.cdi.nriPluginEnabled", "needs toolkit.enabled", id="NRI without the toolkit",
        ),
        pytest.param(
            {"spec": {"devicePlugin": {}, "cdi": {"enabled": False, "nriPluginEnabled": True}}},
            "spec.cdi.nriPluginEnabled", "needs cdi.enabled", id="NRI without CDI",
        ),
        pytest.param(
            {"spec": {"devicePlugin": {"args": "--x"}}}, "spec.devicePlugin.args", "expected a list", id="no list",
        ),
    ],
)  # fmt: skip
def test_problems(manifest: dict[str, Any], path: str, text: str) -> None:
    """What cannot be acted upon is told with its place, and gives no policy."""
    result = parse_policy(manifest)

    assert result.policy is None
    [problem] = result.problems
    assert path == problem.path
    assert text in problem.message


@pytest.mark.parametrize(
    ("component", "absent"),
    [
        pytest.param("device_plugin", True, id="devicePlugin"),
        pytest.param("gfd", True, id="gfd"),
        pytest.param("cdi", True, id="cdi"),
        pytest.param("dcgm", True, id="dcgm, though the chart says false"),
        pytest.param("toolkit", True, id="toolkit"),
        pytest.param("node_status_exporter", False, id="nodeStatusExporter"),
        pytest.param("gds", False, id="gds"),
        pytest.param("sandbox_workloads", False, id="sandboxWorkloads"),
    ],
)
def test_what_absence_means(component: str, absent: bool) -> None:
    """`enabled` that is not written means what it means to NVIDIA's operator; written, it means what it says."""
    field = clusterpolicy.to_camel(component)

    assert absent is parsed().is_enabled(component)
    assert parsed(**{field: {"enabled": True}}).is_enabled(component)
    assert not parsed(**{field: {"enabled": False}}).is_enabled(component)


def test_unmanaged() -> None:
    """Those of virtual machines count only where there are any."""
    machines = {"vfioManager": {"enabled": True}, "ccManager": {"enabled": True}, "driver": {"enabled": False}}

    assert parsed(**machines).unmanaged() == ("toolkit", "dcgm", "dcgmExporter", "migManager")
    assert parsed(**machines, sandboxWorkloads={"enabled": True}).unmanaged()[-2:] == ("vfioManager", "ccManager")


def _schema_of(path: list[str]) -> dict[str, Any]:
    text = (data.path_of("crds") / "nvidia.com_clusterpolicies.yaml").read_text(encoding="utf-8")
    schema = yaml.safe_load(text)["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]
    for part in path:
        schema = schema["properties"][part]
    return dict(schema)


def _fields(model: type[Any], path: tuple[str, ...] = ()) -> list[tuple[tuple[str, ...], Any]]:
    found: list[tuple[tuple[str, ...], Any]] = []
    for name, field in model.model_fields.items():
        place = (*path, str(field.validation_alias or field.alias or name))
        found.append((place, field))
        if isinstance(field.annotation, type) and issubclass(field.annotation, clusterpolicy.Switch.__base__):
            found += _fields(field.annotation, place)
    return found


@pytest.mark.parametrize(
    ("path", "field"), [pytest.param(path, field, id=".".join(path)) for path, field in _fields(ClusterPolicy)]
)
def test_model_is_in_the_schema(path: tuple[str, ...], field: Any) -> None:
    """Every field that we read is one that the API server keeps, with the same default where there is one."""
    schema = _schema_of(list(path))

    if "default" in schema and path != ("cdi", "enabled"):
        assert schema["default"] == field.default or field.default == ""
    if "enum" in schema:
        assert {*schema["enum"], ""} >= set(field.annotation.__args__) >= set(schema["enum"])
