"""JSON patch (RFC 6902) as the API server does it, its leniency included. Called through `patching`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from gpushare.sandbox.apiserver import statuses
from gpushare.sandbox.apiserver.jsonvalues import copied

_LIMIT: Final = 10_000
"""Operations a patch may have."""
_MISSING: Final = object()


class _FailedError(Exception):
    """An operation that cannot be done. What failed is not told to clients, since a real server does not."""


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
    except _FailedError:
        raise statuses.rejected() from None
    return result


def _operate(document: Any, operation: Any) -> Any:
    if not isinstance(operation, Mapping) or not isinstance(operation.get("path"), str):
        raise _FailedError
    do = _OPERATIONS.get(operation.get("op", ""))
    if do is None:
        raise _FailedError
    return do(document, operation, _steps(operation["path"]))


def _add(document: Any, operation: Mapping[str, Any], steps: list[str]) -> Any:
    return _put(document, steps, copied(_value(operation)), insert=True)


def _replace(document: Any, operation: Mapping[str, Any], steps: list[str]) -> Any:
    return _put(document, steps, copied(_value(operation)), insert=False)


def _remove(document: Any, _: Mapping[str, Any], steps: list[str]) -> Any:
    if not steps:
        raise _FailedError
    parent, last = _parent(document, steps)
    if isinstance(parent, dict):
        if last not in parent:
            raise _FailedError
        del parent[last]
    else:
        del parent[_index(parent, last, end=len(parent) - 1)]
    return document


def _move(document: Any, operation: Mapping[str, Any], steps: list[str]) -> Any:
    source = _source(operation)
    value = _get(document, source)
    if value is _MISSING:
        raise _FailedError
    return _put(_remove(document, operation, source), steps, value, insert=True)


def _copy(document: Any, operation: Mapping[str, Any], steps: list[str]) -> Any:
    value = _get(document, _source(operation))
    if value is _MISSING:
        raise _FailedError
    return _put(document, steps, copied(value), insert=True)


def _test(document: Any, operation: Mapping[str, Any], steps: list[str]) -> Any:
    found = _get(document, steps)
    wanted = operation.get("value")
    if (None if found is _MISSING else found) != wanted or isinstance(found, bool) != isinstance(wanted, bool):
        raise _FailedError
    return document


_OPERATIONS: Final[Mapping[str, Callable[[Any, Mapping[str, Any], list[str]], Any]]] = {
    "add": _add,
    "replace": _replace,
    "remove": _remove,
    "move": _move,
    "copy": _copy,
    "test": _test,
}


def _put(document: Any, steps: list[str], value: Any, *, insert: bool) -> Any:
    if not steps:
        return value
    parent, last = _parent(document, steps)
    if isinstance(parent, dict):
        parent[last] = value
    elif insert:
        parent.insert(_index(parent, last, end=len(parent)), value)
    else:
        parent[_index(parent, last, end=len(parent) - 1)] = value
    return document


def _parent(document: Any, steps: list[str]) -> tuple[Any, str]:
    parent = _get(document, steps[:-1])
    if not isinstance(parent, dict | list):
        raise _FailedError
    return parent, steps[-1]


def _get(document: Any, steps: list[str]) -> Any:
    for step in steps:
        if isinstance(document, dict):
            if step not in document:
                return _MISSING
            document = document[step]
        elif isinstance(document, list):
            document = document[_index(document, step, end=len(document) - 1)]
        else:
            return _MISSING
    return document


def _index(items: list[Any], step: str, *, end: int) -> int:
    """The position that a step names; `end` is the last one allowed. Negative ones count from the end, as in Go's library."""
    if step == "-":
        return end
    try:
        position = int(step)
    except ValueError:
        raise _FailedError from None
    if position < 0:
        position += len(items)
    if not 0 <= position <= end:
        raise _FailedError
    return position


def _steps(path: str) -> list[str]:
    if not path:
        return []
    if not path.startswith("/"):
        raise _FailedError
    return [step.replace("~1", "/").replace("~0", "~") for step in path[1:].split("/")]


def _source(operation: Mapping[str, Any]) -> list[str]:
    source = operation.get("from")
    if not isinstance(source, str):
        raise _FailedError
    return _steps(source)


def _value(operation: Mapping[str, Any]) -> Any:
    if "value" not in operation:
        raise _FailedError
    return operation["value"]
