"""Expressions of the Common Expression Language. Called for policies and for the match conditions of webhooks.

Evaluated by CEL's own library for C++, with the extensions that Kubernetes adds and that this library has: optional fields,
strings, `cel.bind`. Kubernetes' functions for quantities, URLs, lists and authorization are not there: an expression that calls
one does not compile, so that whoever writes it is told, and none is taken for true or false without having been evaluated.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable, Mapping

from cel_expr_python import cel
from cel_expr_python.ext import ext_bindings, ext_optional, ext_strings

_STATUS_WORDS = re.compile(r"\A[A-Z_]+: | \[[A-Z_]+\]\Z")
"""What the library puts around its texts, and a real server does not."""


class ExpressionError(ValueError):
    """An expression that does not compile, or that fails with these variables; says which part of it, and why."""


def check(expression: str, names: Iterable[str]) -> None:
    """Whether the expression compiles where variables of these names are known. Raises `ExpressionError`."""
    _compiled(expression, frozenset(names))


def evaluate(expression: str, variables: Mapping[str, object]) -> object:
    """The value of an expression: bool, int, float, str, None, list or dict. Raises `ExpressionError`.

    Variables hold what JSON holds; a field that an object does not have is an error, as on a real server, unless the
    expression asks for it by `has()` or `.?`.
    """
    # Only what the text can mean: the library copies all that it is given, and objects are large.
    named = {name: value for name, value in variables.items() if name in expression}
    found = _compiled(expression, frozenset(variables)).eval(data=named)
    try:
        if found.type() == cel.Type.ERROR:
            raise ExpressionError(_text_of(found.value()))
        return found.plain_value()
    except TypeError as error:  # an optional value, a type
        raise ExpressionError("the result is no value of JSON") from error


@functools.lru_cache(maxsize=1024)
def _compiled(expression: str, names: frozenset[str]) -> cel.Expression:
    try:
        return _environment(names).compile(expression)
    except RuntimeError as error:
        raise ExpressionError(_text_of(error)) from error


@functools.lru_cache(maxsize=64)
def _environment(names: frozenset[str]) -> cel.Env:
    extensions = (ext_optional.ExtOptional(), ext_strings.ExtStrings(), ext_bindings.ExtBindings())
    return cel.NewEnv(variables=dict.fromkeys(names, cel.Type.DYN), extensions=extensions)


def _text_of(error: object) -> str:
    return _STATUS_WORDS.sub("", str(error))
