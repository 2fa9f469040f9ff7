"""Custom resources: defaults, and what their schema refuses."""

from __future__ import annotations

from typing import Any

import pytest

from gpushare.sandbox.apiserver.objects import custom_defaults, schemas
from gpushare.sandbox.apiserver.validation import custom

SPEC: dict[str, Any] = {
    "type": "object",
    "required": ["mode"],
    "properties": {
        "mode": {"type": "string", "enum": ["time", "mps"]},
        "min": {"type": "integer", "minimum": 0},
        "max": {"type": "integer", "maximum": 100},
        "name": {"type": "string", "minLength": 2, "maxLength": 5, "pattern": "^[a-z]+$"},
        "list": {
            "type": "array",
            "maxItems": 2,
            "x-kubernetes-list-type": "map",
            "x-kubernetes-list-map-keys": ["k"],
            "items": {"type": "object", "required": ["k"], "properties": {"k": {"type": "string"}}},
        },
        "set": {"type": "array", "minItems": 1, "x-kubernetes-list-type": "set", "items": {"type": "string"}},
        "q": {"x-kubernetes-int-or-string": True},
        "nil": {"type": "string", "nullable": True},
        "any": {"type": "object", "maxProperties": 1, "additionalProperties": {"type": "integer"}},
        "since": {"type": "string", "format": "date-time"},
    },
}
SCHEMA = schemas.custom(
    {
        "type": "object",
        "properties": {
            "spec": SPEC,
            "status": {"type": "object", "properties": {"shares": {"type": "integer"}}},
        },
    }
)
RULED = schemas.custom({"type": "object", "x-kubernetes-validations": [{"rule": "true"}], "properties": {"spec": SPEC}})


def problems(**spec: Any) -> list[str]:
    return [f"{cause.reason} {cause}" for cause in custom.validate({"spec": {"mode": "time", **spec}}, SCHEMA)]


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        pytest.param(
            {"min": -1},
            "Invalid spec.min: Invalid value: -1: spec.min in body should be greater than or equal to 0",
            id="minimum",
        ),
        pytest.param(
            {"max": 200},
            "Invalid spec.max: Invalid value: 200: spec.max in body should be less than or equal to 100",
            id="maximum",
        ),
        pytest.param(
            {"name": "TOOLONG"},
            "TooLong spec.name: Too long: may not be more than 5 bytes",
            id="only the first problem of a text",
        ),
        pytest.param(
            {"name": "a"},
            'Invalid spec.name: Invalid value: "a": spec.name in body should be at least 2 chars long',
            id="short",
        ),
        pytest.param(
            {"name": "AB"},
            "Invalid spec.name: Invalid value: \"AB\": spec.name in body should match '^[a-z]+$'",
            id="pattern",
        ),
        pytest.param(
            {"mode": "other"},
            'NotSupported spec.mode: Unsupported value: "other": supported values: "time", "mps"',
            id="enum",
        ),
        pytest.param(
            {"min": "x"},
            'TypeInvalid spec.min: Invalid value: "string": spec.min in body must be of type integer: "string"',
            id="type",
        ),
        pytest.param(
            {"any": {"a": "x"}},
            'TypeInvalid spec.any.a: Invalid value: "string": spec.any.a in body must be of type integer: "string"',
            id="map value",
        ),
        pytest.param(
            {"any": {"a": 1, "b": 2}}, "TooMany spec.any: Too many: 2: must have at most 1 item", id="too many keys"
        ),
        pytest.param({"list": [{}]}, "Required spec.list[0].k: Required value", id="required in a list"),
        pytest.param(
            {"list": [{"k": "a"}, {"k": "a"}]}, 'Duplicate spec.list[1]: Duplicate value: {"k":"a"}', id="duplicate key"
        ),
        pytest.param({"set": ["a", "a"]}, 'Duplicate spec.set[1]: Duplicate value: "a"', id="duplicate value"),
        pytest.param(
            {"set": []},
            "Invalid spec.set: Invalid value: 0: spec.set in body should have at least 1 items",
            id="too few",
        ),
        pytest.param(
            {"q": 1.5},
            'TypeInvalid spec.q: Invalid value: "number": spec.q in body must be of type integer,string: "number"',
            id="int or string",
        ),
        pytest.param(
            {"since": "yesterday"},
            'TypeInvalid spec.since: Invalid value: "yesterday": spec.since in body must be of type date-time: "yesterday"',
            id="format",
        ),
    ],
)
def test_refused(spec: dict[str, Any], expected: str) -> None:
    """Each rule, in a real server's words."""
    assert problems(**spec) == [f"FieldValue{expected}"]


@pytest.mark.parametrize(
    "spec",
    [
        pytest.param({"min": 0, "max": 100}, id="numbers"),
        pytest.param({"q": 1}, id="number"),
        pytest.param({"q": "50%"}, id="text"),
        pytest.param({"nil": None}, id="nullable"),
        pytest.param({"since": "2026-11-01T00:00:00Z"}, id="time"),
        pytest.param({"min": 2.0}, id="whole number with a point"),
        pytest.param({"free": {"x": 1}}, id="what pruning is there for"),
    ],
)
def test_accepted(spec: dict[str, Any]) -> None:
    """What the schema allows."""
    assert problems(**spec) == []


def test_missing_field() -> None:
    """Required fields are named by their whole path."""
    assert [str(cause) for cause in custom.validate({"spec": {}}, SCHEMA)] == ["spec.mode: Required value"]
    assert custom.validate({}, SCHEMA) == []


def test_wrong_type_of_a_whole_struct() -> None:
    """Nothing is said about what is in it then."""
    assert [str(cause) for cause in custom.validate({"spec": []}, SCHEMA)] == [
        'spec: Invalid value: "array": spec in body must be of type object: "array"'
    ]


def test_status_texts_start_below_status() -> None:
    """Through the status door, texts leave out the first step, causes do not."""
    causes = custom.validate({"spec": {"min": -1}, "status": {"shares": "four"}}, SCHEMA, "status")

    assert [str(cause) for cause in causes] == [
        'status.shares: Invalid value: "string": shares in body must be of type integer: "string"'
    ]


@pytest.mark.parametrize(
    ("spec", "told"),
    [
        pytest.param({"mode": "other"}, True, id="enum"),
        pytest.param({}, True, id="required"),
        pytest.param({"mode": "time", "min": -1}, False, id="a range stops nobody"),
    ],
)
def test_rules_that_were_not_checked(spec: dict[str, Any], told: bool) -> None:
    """With a grave problem a real server does not go on to CEL rules, and says so."""
    causes = custom.validate({"spec": spec}, RULED)

    assert ("<nil>: Invalid value: null: some validation rules were not checked" in str(causes[-1])) is told


DEFAULTED = schemas.custom(
    {
        "type": "object",
        "properties": {
            "spec": {
                "type": "object",
                "properties": {
                    "driver": {"type": "object", "properties": {"enabled": {"type": "boolean", "default": True}}},
                    "mig": {"type": "object", "default": {}, "properties": {"strategy": {"default": "single"}}},
                    "list": {"type": "array", "items": {"type": "object", "properties": {"n": {"default": 1}}}},
                    "nil": {"type": "string", "nullable": True},
                },
            }
        },
    }
)


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        pytest.param({}, {"mig": {"strategy": "single"}}, id="only where the parent is there"),
        pytest.param(
            {"driver": {}}, {"driver": {"enabled": True}, "mig": {"strategy": "single"}}, id="below what was written"
        ),
        pytest.param({"mig": None}, {"mig": {"strategy": "single"}}, id="null with a default"),
        pytest.param({"driver": None}, {"mig": {"strategy": "single"}}, id="null without one goes"),
        pytest.param({"nil": None}, {"nil": None, "mig": {"strategy": "single"}}, id="null that is allowed"),
        pytest.param({"list": [{}]}, {"list": [{"n": 1}], "mig": {"strategy": "single"}}, id="in lists"),
    ],
)
def test_defaults(spec: dict[str, Any], expected: dict[str, Any]) -> None:
    """Defaults come in wherever their parent is, once and for all."""
    obj = {"metadata": {}, "spec": spec}
    custom_defaults.apply(obj, DEFAULTED)
    assert obj == {"metadata": {}, "spec": expected}

    custom_defaults.apply(obj, DEFAULTED)
    assert obj == {"metadata": {}, "spec": expected}
