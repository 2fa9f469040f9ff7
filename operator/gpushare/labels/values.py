"""Label values: what of a text may stand in one. Used by every family."""

from __future__ import annotations

import re
from typing import Final

MAX_VALUE: Final = 63
_ILLEGAL: Final = re.compile(r"[^A-Za-z0-9\-_. ]", re.ASCII)
_EDGE: Final = "-_. "


def sanitise(text: str) -> str:
    """A text of the hardware as a label value: `Tesla T4` is `Tesla-T4`, `TITAN X (Pascal)` is `TITAN-X-Pascal`.

    As GPU feature discovery does it, and legal besides: never longer than 63 characters, with a letter or digit at each end.
    """
    return legal("-".join(_ILLEGAL.sub("", text).split()))


def with_suffix(text: str, suffix: str) -> str:
    """Joins the two; where they get too long, the text gives way: the suffix is what people select by."""
    return text[: MAX_VALUE - len(suffix)].rstrip(_EDGE) + suffix


def legal(value: str) -> str:
    """The value, cut so that the API server takes it."""
    return _ILLEGAL.sub("", value).replace(" ", "-").lstrip(_EDGE)[:MAX_VALUE].rstrip(_EDGE)
