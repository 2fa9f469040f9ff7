"""The file of `--settings`: what an administrator decides about requests for fractions. Read once, by `app`.

Strict: a key that is not known, or a value of the wrong kind, ends the process with a text that names the place, rather
than let pods be placed by other rules than were meant.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Mapping
from dataclasses import fields, replace
from typing import Any, Final

from gpushare import names
from gpushare.api.documents import read_document
from gpushare.domain.fractions import Placement
from gpushare.errors import ConfigurationError, UsageError
from gpushare.placement.settings import RequestSettings
from gpushare.scheduler.mutating import CORE_POLICIES, AdmissionSettings


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError("expected a text")
    return value


def _number(value: object) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise ValueError("expected a whole number, 0 or more")
    return value


def _factor(value: object) -> int:
    if _number(value) == 0:
        raise ValueError("expected a whole number, 1 or more")
    return _number(value)


def _percent(value: object) -> int:
    if _number(value) > 100:
        raise ValueError("expected a percentage from 0 to 100")
    return _number(value)


def _flag(value: object) -> bool:
    if not isinstance(value, bool):
        raise TypeError("expected true or false")
    return value


def _placement(value: object) -> Placement:
    try:
        return Placement(str(value))
    except ValueError:
        raise ValueError("expected binpack or spread") from None


def _core_policy(value: object) -> str:
    if value not in CORE_POLICIES:
        raise ValueError(f"expected one of {', '.join(CORE_POLICIES)}")
    return str(value)


def _names(value: object) -> frozenset[str]:
    if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
        raise ValueError("expected a list of names")
    return frozenset(value)


_REQUESTS: Final[Mapping[str, tuple[str, Callable[[object], Any]]]] = {
    "resourceCountName": ("count", _text),
    "resourceMemoryName": ("memory", _text),
    "resourceMemoryPercentageName": ("memory_percentage", _text),
    "resourceCoreName": ("cores", _text),
    "resourcePriorityName": ("priority", _text),
    "aliyunMemoryName": ("aliyun_memory", _text),
    "aliyunCoreName": ("aliyun_cores", _text),
    "memoryFactor": ("memory_factor", _factor),
    "defaultMemory": ("default_memory", _number),
    "defaultCores": ("default_cores", _percent),
    "defaultGPUNum": ("default_count", _number),
    "claimPlainGPU": ("claim_plain_gpu", _flag),
    "nodePolicy": ("node_policy", _placement),
}
"""Names as HAMi's device configuration has them, as far as it has the same."""
_ADMISSION: Final[Mapping[str, tuple[str, Callable[[object], Any]]]] = {
    "forceSchedulerName": ("force_scheduler", _flag),
    "runtimeClassName": ("runtime_class", _text),
    "gpuCorePolicy": ("core_policy", _core_policy),
    "overwriteEnv": ("hide_gpus", _flag),
    "allowedEnv": ("allowed_env", _names),
}
KEYS: Final = (*_REQUESTS, *_ADMISSION)


def read_settings(text: str, place: str = "--settings") -> AdmissionSettings:
    """Reads YAML; an empty text, or one without a key, is the default of it.

    Raises:
        UsageError: says where and what.
    """
    try:
        data = read_document(text).data or {}
    except ConfigurationError as error:
        raise UsageError(f"{place}: {error}") from error
    if not isinstance(data, dict):
        raise UsageError(f"{place}: expected keys and values, such as claimPlainGPU: true")
    requests = {_REQUESTS[key][0]: _read(place, key, data[key], _REQUESTS[key][1]) for key in data if key in _REQUESTS}
    others = {_ADMISSION[key][0]: _read(place, key, data[key], _ADMISSION[key][1]) for key in data if key in _ADMISSION}
    for key in data:
        if key not in KEYS:
            raise UsageError(f"{place}: unknown key {key!r}{_suggest(str(key))}")
    return replace(AdmissionSettings(requests=RequestSettings(**requests)), **others)


def resources_of(settings: RequestSettings) -> frozenset[str]:
    """All names by which pods ask for GPUs, those included by which nodes give them out."""
    texts = {
        names.RESOURCE_GPU,
        names.RESOURCE_ALIYUN_MEM,
        *(getattr(settings, each.name) for each in fields(settings)),
    }
    return frozenset(text for text in texts if isinstance(text, str) and "/" in text)


def _read(place: str, key: str, value: object, read: Callable[[object], Any]) -> Any:
    try:
        return read(value)
    except (TypeError, ValueError) as error:
        raise UsageError(f"{place}: {key}: {value!r}: {error}") from error


def _suggest(key: str) -> str:
    close = difflib.get_close_matches(key, KEYS, n=1)
    return f"; did you mean {close[0]!r}?" if close else f"; there are {', '.join(KEYS)}"
