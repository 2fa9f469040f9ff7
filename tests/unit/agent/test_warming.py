"""Loading ahead of time."""

from __future__ import annotations

import subprocess
import sys

PROGRAM = """
import sys
from gpushare.agent import warming
before = set(sys.modules)
warming.load()
loaded = set(sys.modules)
from gpushare.allocation.preferring import choose
from gpushare.api.parsing import parse_sharing
parse_sharing("sharing: {timeSlicing: {resources: [{name: nvidia.com/gpu, replicas: 0}]}}")
print(sorted(name for name in set(sys.modules) - loaded if name.startswith("gpushare")))
assert "pydantic" in loaded - before
"""


def test_nothing_is_left_to_load() -> None:
    """A configuration that is read later, even one that is refused, finds everything there."""
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=True)

    assert done.stdout.strip() in {"[]", "['gpushare.api.parsing']"}
