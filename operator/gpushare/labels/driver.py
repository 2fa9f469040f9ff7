"""Labels of the driver and of the newest CUDA that it supports."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from gpushare.domain.devices import Inventory

_VERSION: Final = re.compile(r"(\d+)\.(\d+)(?:\.(\d+))?", re.ASCII)


def is_version(text: str) -> bool:
    """Whether the text is a driver's version of the form that labels can tell."""
    return _VERSION.fullmatch(text) is not None


def build_labels(inventory: Inventory) -> Mapping[str, str]:
    """`cuda.driver*` and `cuda.runtime*`, each in an older and a newer spelling; none for a version of another form."""
    labels: dict[str, str] = {}
    match = _VERSION.fullmatch(inventory.driver_version)
    if match:
        major, minor, revision = match.group(1), match.group(2), match.group(3) or ""
        labels |= _spelled("driver", major=major, minor=minor)
        labels |= {
            "cuda.driver.rev": revision,
            "cuda.driver-version.revision": revision,
            "cuda.driver-version.full": match.group(),
        }
    if inventory.cuda_version is not None:
        major, minor = map(str, inventory.cuda_version)
        labels |= _spelled("runtime", major=major, minor=minor)
        labels["cuda.runtime-version.full"] = f"{major}.{minor}"
    return labels


def _spelled(what: str, **parts: str) -> dict[str, str]:
    return {f"cuda.{what}{infix}.{part}": value for part, value in parts.items() for infix in ("", "-version")}
