"""From HTTP answers to errors."""

import json

import pytest

from gpushare.errors import ClusterRefused, ClusterUnavailable, Conflict, Expired
from gpushare.kube import failures


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        (400, ClusterRefused),
        (401, ClusterRefused),
        (403, ClusterRefused),
        (404, ClusterRefused),
        (409, Conflict),
        (410, Expired),
        (415, ClusterRefused),
        (422, ClusterRefused),
        (429, ClusterUnavailable),
        (500, ClusterUnavailable),
        (503, ClusterUnavailable),
        (504, ClusterUnavailable),
    ],
)
def test_code(code: int, expected: type[Exception]) -> None:
    """Each status says who has to act."""
    error = failures.failure_of(code, {"message": "no"}, "GET /x")

    assert type(error) is expected
    assert str(error) == "GET /x: no"
    if isinstance(error, ClusterRefused):
        assert error.code == code


def test_long_message_is_cut() -> None:
    """Some refusals quote the whole object; nobody wants that in a condition."""
    error = failures.failure_of(422, {"message": "x" * 5000}, "PATCH /x")

    assert len(str(error)) == 500
    assert str(error).endswith("...")


@pytest.mark.parametrize(
    ("body", "message"),
    [
        pytest.param(b'{"kind": "Status", "message": "m"}', "m", id="status"),
        pytest.param(b"404 page not found\n", "404 page not found", id="text"),
        pytest.param(b'{"kind": "List"}', '{"kind": "List"}', id="another object"),
        pytest.param(b"", "", id="nothing"),
    ],
)
def test_status(body: bytes, message: str) -> None:
    """Whatever a proxy or an old path answers becomes a readable status."""
    assert failures.status_of(body)["message"] == message


@pytest.mark.parametrize(
    ("status", "expected"),
    [
        pytest.param({"reason": "NotFound", "details": {"name": "x", "kind": "nodes"}}, True, id="the object"),
        pytest.param({"reason": "NotFound", "details": {"name": "ns", "kind": "namespaces"}}, False, id="namespace"),
        pytest.param({"reason": "NotFound", "details": {}}, False, id="the kind"),
        pytest.param(failures.status_of(json.dumps("404").encode()), False, id="no status"),
    ],
)
def test_absent(status: dict, expected: bool) -> None:
    """Only a missing object is None; a missing kind or namespace is an error."""
    assert expected == failures.is_absent(status, "x")
