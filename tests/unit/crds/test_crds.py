"""The kinds as the API server will know them, held against what we write and what people have."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import jsonschema
import kubernetes_validate
import pytest
import yaml

from gpushare import data
from gpushare.agent import reporting
from gpushare.agent.deciding import Decision
from gpushare.agent.facts import Facts
from gpushare.agent.options import AgentOptions
from gpushare.agent.reporting import build_status
from gpushare.agent.settings import settle
from gpushare.api.sharing import SharingConfig
from gpushare.domain import gpunode, manifests
from gpushare.domain.conditions import Condition
from gpushare.domain.devices import Health
from gpushare.domain.gpunode import Config, ConfigReason, ConfigSource, GPUNode
from gpushare.domain.manifests import Manifest
from gpushare.plan.build import build_plan
from gpushare.sharing.responses import ResponseOptions
from support.inventories import gpu, split_gpu
from support.inventories import node as inventory_of
from support.snapshots import NOW, config_map, node, sharing_policy, snapshot, time_slicing

FILES = sorted(path.name for path in data.path_of("crds").glob("*.yaml"))


def crd(file: str) -> Manifest:
    return dict(yaml.safe_load((data.path_of("crds") / file).read_text(encoding="utf-8")))


def schema_of(file: str) -> dict[str, Any]:
    [version] = crd(file)["spec"]["versions"]
    return dict(version["schema"]["openAPIV3Schema"])


def closed(schema: Any) -> Any:
    """The schema, refusing what the API server would silently prune."""
    if isinstance(schema, list):
        return [closed(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    body = {key: closed(value) for key, value in schema.items()}
    if "properties" in body and "additionalProperties" not in body:
        body["additionalProperties"] = False
    return body


def lines_of(schema: dict[str, Any], path: str = "") -> Iterator[str]:
    """Every field with its type and rules, one a line."""
    for name, field in sorted(schema.get("properties", {}).items()):
        place = f"{path}.{name}" if path else name
        rules = {
            key: field[key]
            for key in ("default", "enum", "pattern", "minimum", "format", "minLength", "maxLength")
            if key in field
        }
        kind = "int-or-string" if "anyOf" in field else field["type"]
        required = " required" if name in schema.get("required", ()) else ""
        yield f"{place}: {kind}{required}" + "".join(f" {key}={value!r}" for key, value in rules.items())
        yield from lines_of(field, place)
        yield from lines_of(field.get("items", {}), f"{place}[]")
        if isinstance(extra := field.get("additionalProperties"), dict):
            yield f"{place}.*: {'int-or-string' if 'anyOf' in extra else extra['type']}"


def undescribed(schema: dict[str, Any], path: str = "") -> Iterator[str]:
    for name, field in schema.get("properties", {}).items():
        place = f"{path}.{name}" if path else name
        if not field.get("description") and place not in {"apiVersion", "kind", "metadata"}:
            yield place
        yield from undescribed(field, place)
        yield from undescribed(field.get("items", {}), place)


def test_everything_is_explained() -> None:
    """`kubectl explain` says something of every field of ours; those that all kinds have it explains by itself."""
    assert list(undescribed(schema_of("gpushare.dev_gpunodes.yaml"))) == []


@pytest.mark.parametrize("file", FILES)
def test_nothing_is_empty(file: str) -> None:
    """A comma in a text without quotes makes a key without a value, which API servers drop and then take for a conflict."""
    assert list(empty_fields(crd(file))) == []


def empty_fields(value: Any, path: str = "") -> Iterator[str]:
    if value is None:
        yield path
    elif isinstance(value, dict):
        for name, part in value.items():
            yield from empty_fields(part, f"{path}.{name}")
    elif isinstance(value, list):
        for index, part in enumerate(value):
            yield from empty_fields(part, f"{path}[{index}]")


@pytest.mark.parametrize("file", FILES)
def test_definition_is_valid(file: str) -> None:
    """A real API server would take it."""
    definition = crd(file)

    kubernetes_validate.validate(definition, "1.36", strict=True)
    assert definition["metadata"]["name"] == file.removesuffix(".yaml").partition("_")[2] + "." + file.partition("_")[0]
    jsonschema.Draft7Validator.check_schema(schema_of(file))


@pytest.mark.parametrize("file", FILES)
def test_fields(file: str, golden: Callable[[str, str], None]) -> None:
    """Every field, as a list that a person can read a change in."""
    golden(f"crds/{file.removesuffix('.yaml')}.txt", "\n".join(lines_of(schema_of(file))) + "\n")


@pytest.mark.parametrize("kind", [manifests.CLUSTER_POLICY, manifests.GPU_NODE])
def test_kind_is_ours(kind: manifests.Kind) -> None:
    """Group, version, names and scope are those that we speak of."""
    spec = crd(f"{kind.group}_{kind.plural}.yaml")["spec"]
    [version] = spec["versions"]

    assert (spec["group"], version["name"], spec["names"]["kind"]) == (kind.group, kind.version, kind.kind)
    assert (spec["names"]["plural"], spec["scope"]) == (kind.plural, "Cluster")
    assert version["subresources"] == {"status": {}}


def test_gpunode_columns() -> None:
    """What `kubectl get gpunodes` shows."""
    [version] = crd("gpushare.dev_gpunodes.yaml")["spec"]["versions"]

    shown = [column["name"] for column in version["additionalPrinterColumns"] if not column.get("priority")]
    assert shown == ["Config", "Applied", "GPUs", "Shares", "Healthy", "Problem", "Age"]


@pytest.mark.parametrize(
    "config",
    [
        pytest.param(Config(), id="not shared"),
        pytest.param(
            Config(
                reason=ConfigReason.LABEL,
                source=ConfigSource(namespace="gpu-operator", name="m", key="any"),
                content="version: v1\n",
                mig_strategy="mixed",
            ),
            id="shared",
        ),
    ],
)
def test_gpunode_spec(config: Config) -> None:
    """What the controller writes is kept whole, and read back as it was."""
    manifest = gpunode.assignment_manifest("gpu01", "uid", config)

    jsonschema.validate(manifest["spec"], closed(schema_of("gpushare.dev_gpunodes.yaml")["properties"]["spec"]))
    read = GPUNode.from_json(manifest)
    assert (read.name, read.node_uid, read.config) == ("gpu01", "uid", config)


def test_gpunode_status() -> None:
    """What the agent writes is kept whole, truncated or not."""
    sick = replace(gpu(0), health=Health(healthy=False, reason="XID 79", since=NOW))
    inventory = inventory_of(sick, split_gpu(1, "1g.5gb"))
    settings = settle(AgentOptions(), SharingConfig(), "")
    facts = Facts(
        decision=Decision(in_force=None, settings=settings, responses=ResponseOptions(), pools={}),
        generation=1, inventory=inventory, failure="", pools={}, standings={}, labels={"a": "b"},
    )  # fmt: skip
    schema = closed(schema_of("gpushare.dev_gpunodes.yaml")["properties"]["status"])
    status = build_status(facts)
    for condition in status["conditions"]:
        condition["lastTransitionTime"] = NOW

    jsonschema.validate({**status, "appliedRevision": ""}, schema)
    jsonschema.validate(reporting.truncated(status, 600), schema)
    condition = Condition(type=gpunode.CONFIG_ASSIGNED, status="True", reason="NotShared", last_transition_time=NOW)
    jsonschema.validate(gpunode.conditions_manifest("gpu01", [condition])["status"], schema)


def test_policy_status() -> None:
    """What the controller writes on a policy is kept whole."""
    maps = (config_map(any=time_slicing(4)),)
    plan = build_plan(snapshot(node(), policies=(sharing_policy("any"),), config_maps=maps), NOW)

    schema = closed(schema_of("nvidia.com_clusterpolicies.yaml")["properties"]["status"])
    jsonschema.validate(plan.policies[0].to_json(), schema)


EMPTY = {
    name: {}
    for name in (
        "operator", "daemonsets", "driver", "toolkit", "devicePlugin", "dcgm", "dcgmExporter", "nodeStatusExporter", "gfd",
    )
}  # fmt: skip


@pytest.mark.parametrize(
    ("spec", "valid"),
    [
        pytest.param(EMPTY, True, id="nine empty parts"),
        pytest.param({**EMPTY, "devicePlugin": {"resources": {"limits": {"cpu": 1, "memory": "1Gi"}}}}, True, id="quantities"),
        pytest.param({**EMPTY, "devicePlugin": {"resources": {"limits": {"cpu": "many"}}}}, False, id="no quantity"),
        pytest.param({**EMPTY, "devicePlugin": {"image": ""}}, False, id="an empty image"),
        pytest.param({**EMPTY, "mig": {"strategy": "some"}}, False, id="an unknown strategy"),
        pytest.param({**EMPTY, "devicePlugin": {"env": [{"value": "x"}]}}, False, id="a variable without a name"),
        pytest.param({**EMPTY, "driver": {"upgradePolicy": {"maxUnavailable": 3}}}, True, id="a number or a percentage"),
        pytest.param({**EMPTY, "operator": {"metrics": {"serviceMonitor": {"interval": "soon"}}}}, False, id="no duration"),
        pytest.param({key: {} for key in EMPTY if key != "devicePlugin"}, False, id="a part is missing"),
    ],
)  # fmt: skip
def test_policy_spec(spec: dict[str, Any], valid: bool) -> None:
    """What the API server takes and what it refuses."""
    validator = jsonschema.Draft7Validator(closed(schema_of("nvidia.com_clusterpolicies.yaml")["properties"]["spec"]))

    assert valid is validator.is_valid(spec)
