"""Bodies in protobuf. The messages are written here field by field, as kubectl's library writes them."""

from __future__ import annotations

import pytest

from gpushare.sandbox.apiserver.protocol import protobuf
from gpushare.sandbox.apiserver.protocol.protobuf_messages import MESSAGES
from gpushare.sandbox.apiserver.statuses import ApiError


def number(field: int, value: int) -> bytes:
    return varint(field << 3) + varint(value)


def text(field: int, value: str | bytes) -> bytes:
    content = value.encode() if isinstance(value, str) else value
    return varint(field << 3 | 2) + varint(len(content)) + content


def varint(value: int) -> bytes:
    value &= (1 << 64) - 1
    result = b""
    while value > 0x7F:
        result += bytes([value & 0x7F | 0x80])
        value >>= 7
    return result + bytes([value])


def entry(field: int, key: str, value: str | bytes) -> bytes:
    return text(field, text(1, key) + text(2, value))


def body(api_version: str, kind: str, content: bytes) -> bytes:
    envelope = text(1, text(1, api_version) + text(2, kind)) + text(2, content) + text(3, "") + text(4, "")
    return b"k8s\x00" + envelope


NAMED = text(1, text(1, "x") + text(2, "") + text(3, "ns") + text(5, "") + number(7, 0) + text(8, b""))
"""Metadata with what Go writes though nobody set it."""


@pytest.mark.parametrize(
    ("kind", "api_version", "content", "expected"),
    [
        pytest.param("ConfigMap", "v1", entry(2, "a", "b"), {"data": {"a": "b"}}, id="config map"),
        pytest.param("ConfigMap", "v1", entry(3, "a", b"\xff"), {"binaryData": {"a": "/w=="}}, id="bytes"),
        pytest.param(
            "Secret", "v1", entry(2, "p", b"w") + text(3, "Opaque"), {"data": {"p": "dw=="}, "type": "Opaque"}, id="secret"
        ),
        pytest.param("Namespace", "v1", text(2, b"") + text(3, text(1, "")), {}, id="empty structs"),
        pytest.param(
            "Deployment", "apps/v1",
            text(2, number(1, 0) + text(2, entry(1, "app", "w")) + text(3, text(2, text(2, text(1, "c") + text(2, "i"))))),
            {"spec": {"replicas": 0, "selector": {"matchLabels": {"app": "w"}},
                      "template": {"spec": {"containers": [{"name": "c", "image": "i"}]}}}},
            id="deployment; zero replicas are meant",
        ),
        pytest.param(
            "Pod", "v1", text(2, text(2, text(1, "c") + text(8, entry(1, "nvidia.com/gpu", text(1, "1"))))),
            {"spec": {"containers": [{"name": "c", "resources": {"limits": {"nvidia.com/gpu": "1"}}}]}}, id="quantity",
        ),
        pytest.param(
            "ResourceQuota", "v1", text(2, entry(1, "limits.nvidia.com/gpumem", text(1, "4000"))) + text(3, b""),
            {"spec": {"hard": {"limits.nvidia.com/gpumem": "4000"}}}, id="quota",
        ),
        pytest.param(
            "Pod", "v1", text(2, text(1, text(1, "v") + text(2, text(2, b"")))),
            {"spec": {"volumes": [{"name": "v", "emptyDir": {}}]}}, id="volume",
        ),
        pytest.param(
            "ClusterRole", "rbac.authorization.k8s.io/v1", text(2, text(1, "get") + text(1, "list") + text(2, "")),
            {"rules": [{"verbs": ["get", "list"], "apiGroups": [""]}]}, id="lists keep empty texts",
        ),
        pytest.param(
            "TokenRequest", "authentication.k8s.io/v1", text(2, number(4, 600)), {"spec": {"expirationSeconds": 600}},
            id="duration of a token",
        ),
        pytest.param(
            "Service", "v1", text(2, text(1, number(3, 80) + text(4, number(1, 1) + number(2, 0) + text(3, "http")))),
            {"spec": {"ports": [{"port": 80, "targetPort": "http"}]}}, id="number or text",
        ),
        pytest.param(
            "PriorityClass", "scheduling.k8s.io/v1", number(2, -5), {"value": -5}, id="negative",
        ),
    ],
)  # fmt: skip
def test_decode(kind: str, api_version: str, content: bytes, expected: dict[str, object]) -> None:
    """What kubectl's commands send becomes the object that they meant."""
    metadata = {"name": "x", "namespace": "ns"}

    assert protobuf.decode(body(api_version, kind, NAMED + content)) == {
        "apiVersion": api_version, "kind": kind, "metadata": metadata, **expected,
    }  # fmt: skip


def test_times() -> None:
    """Times are seconds since 1970; none is not the year 1."""
    set_time = text(1, text(1, "x") + text(8, number(1, 1_793_491_200)))
    zero_time = text(1, text(1, "x") + text(8, number(1, -62_135_596_800)))

    assert protobuf.decode(body("v1", "ConfigMap", set_time))["metadata"]["creationTimestamp"] == "2026-11-01T00:00:00Z"
    assert protobuf.decode(body("v1", "ConfigMap", zero_time))["metadata"] == {"name": "x"}


@pytest.mark.parametrize(
    ("content", "code", "message"),
    [
        pytest.param(body("v1", "Strange", b""), 415, "does not read kind Strange from protobuf", id="kind"),
        pytest.param(body("v1", "ConfigMap", text(99, "x")), 415, "field 99 of ConfigMap", id="field"),
        pytest.param(body("v1", "Pod", text(2, text(18, text(1, "x")))), 415, "field 18 of PodSpec", id="field below"),
        pytest.param(b"{}", 400, "is not Kubernetes protobuf", id="JSON"),
        pytest.param(b"k8s\x00\xff", 400, "error decoding protobuf", id="cut off"),
        pytest.param(b"k8s\x00" + text(2, "x"), 400, "error decoding protobuf", id="no kind"),
        pytest.param(body("v1", "ConfigMap", b"\x0a\x7fx"), 400, "longer than the body", id="wrong length"),
        pytest.param(body("v1", "ConfigMap", number(1, 5)), 400, "a number where bytes are expected", id="wrong type"),
    ],
)
def test_refused(content: bytes, code: int, message: str) -> None:
    """What is not understood is refused, never dropped."""
    with pytest.raises(ApiError) as caught:
        protobuf.decode(content)

    assert caught.value.code == code
    assert message in caught.value.message


def test_unknown_fields_that_hold_nothing() -> None:
    """Go writes fields that nobody set; they are no reason to refuse."""
    content = NAMED + text(99, b"") + number(98, 0) + text(97, text(1, b"") + number(2, 0))
    assert protobuf.decode(body("v1", "ConfigMap", content))["metadata"] == {"name": "x", "namespace": "ns"}


def test_tables_are_whole() -> None:
    """Every message that a field refers to is there, and no number is given twice."""
    for message in MESSAGES:
        layout = protobuf._layout(message)
        assert len(layout) == len(MESSAGES[message].split())
        for field in layout.values():
            assert field.type in MESSAGES or field.type in protobuf._SCALARS, f"{message}.{field.name}"
