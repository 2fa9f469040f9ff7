"""The node labels of GPU feature discovery: one module a label family, merged in order by `building`.

Belongs here: facts to label values, always legal ones. Does not belong here: writing them anywhere.
"""

from __future__ import annotations

from gpushare.labels.building import build_labels
from gpushare.labels.driver import is_version
from gpushare.labels.facts import HostFacts, VirtualGpu

__all__ = ["HostFacts", "VirtualGpu", "build_labels", "is_version"]
