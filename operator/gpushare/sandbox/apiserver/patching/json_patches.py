"""JSON patch (RFC 6902) as the API server does it, its leniency included."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from gpushare.sandbox.apiserver import statuses
from gpushare.sandbox.apiserver.objects.jsonvalues import compact, copied

_LIMIT: Final = 10_000
"""Operations a patch may have."""


def apply(old: Any, operations: Any) -> Any:
    """The patched object; `old` is left as it is.

    As on a real server, `replace` of a key that is not there adds it, and `test` of a missing path passes for null.

    Raises:
        ApiError: not a list of operations (400), or an operation that fails (422).
    """
    if not isinstance(operations, Sequence) or isinstance(operations, str):
        kind = "object" if isinstance(operations, Mapping) else type(operations).__name__
        raise statuses.bad_request(
            f"error decoding patch: json: cannot unmarshal {kind} into Go value of type []handlers.jsonPatchOp"
        )
    if len(operations) > _LIMIT:
        message = f"The allowed maximum operations in a JSON patch is {_LIMIT}, got {len(operations)}"
        raise statuses.ApiError(413, "RequestEntityTooLarge", message, details={})
    result = copied(old)
    try:
        for operation in operations:
            result = _operate(result, operation)
    except (LookupError, ValueError, TypeError, AttributeError):
        # A path that leads nowhere, an operation without its parts, parts of the wrong type: clients are not told which.
        raise statuses.rejected() from None
    return result


def _operate(document: Any, operation: Mapping[str, Any]) -> Any:
    steps = _steps(operation["path"])
    match operation["op"]:
        case "add":
            return _put(document, steps, copied(operation["value"]), insert=True)
        case "replace":
            return _put(document, steps, copied(operation["value"]), insert=False)
        case "remove":
            return _remove(document, steps)
        case "move":
            source = _steps(operation["from"])
            value = _get(document, source)
            return _put(_remove(document, source), steps, value, insert=True)
        case "copy":
            return _put(document, steps, copied(_get(document, _steps(operation["from"]))), insert=True)
        case "test":
            _test(document, steps, operation.get("value"))
            return document
        case unknown:
            raise ValueError(unknown)


def _steps(path: str) -> list[str]:
    start, *steps = path.split("/")
    if start:
        raise ValueError(path)
    return [step.replace("~1", "/").replace("~0", "~") for step in steps]


def _get(document: Any, steps: Sequence[str]) -> Any:
    for step in steps:
        document = document[_index(document, step) if isinstance(document, list) else step]
    return document


def _put(document: Any, steps: Sequence[str], value: Any, *, insert: bool) -> Any:
    if not steps:
        return value
    parent = _get(document, steps[:-1])
    if not isinstance(parent, list):
        parent[steps[-1]] = value
    elif insert:
        parent.insert(_index(parent, steps[-1], beyond=1), value)
    else:
        parent[_index(parent, steps[-1])] = value
    return document


def _remove(document: Any, steps: Sequence[str]) -> Any:
    parent = _get(document, steps[:-1])
    del parent[_index(parent, steps[-1]) if isinstance(parent, list) else steps[-1]]
    return document


def _test(document: Any, steps: Sequence[str], wanted: Any) -> None:
    try:
        found = _get(document, steps)
    except LookupError:
        found = None
    # As JSON, since true is no 1.
    if compact(found) != compact(wanted):
        raise ValueError(wanted)


def _index(items: list[Any], step: str, *, beyond: int = 0) -> int:
    """The position that a step names, at most `beyond` the last. Negative ones count from the end, as in Go's library."""
    end = len(items) - 1 + beyond
    position = end if step == "-" else int(step)
    position += len(items) if position < 0 else 0
    if not 0 <= position <= end:
        raise IndexError(step)
    return position
