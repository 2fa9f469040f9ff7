"""Resources in a pod that nobody serves, and what their writer may have meant. Used by `explanations`.

No webhook sees such a pod, and kube-scheduler only says that there is too little of them.
"""

from __future__ import annotations

import difflib
from collections.abc import Collection, Sequence
from typing import Final

from gpushare import names
from gpushare.domain.manifests import Manifest
from gpushare.errors import Problem
from gpushare.placement.reading import Findings, read_containers

_PREFIXES: Final = (names.PREFIX, names.PREFIX_ALIYUN)
"""Other resources are not ours to judge."""


def find_problems(pod: Manifest, known: Collection[str]) -> Sequence[Problem]:
    """A problem for each resource of NVIDIA's or Alibaba's words that is not among the known ones."""
    findings = Findings()
    for reader in read_containers(pod, findings):
        for resource in reader.resources:
            if resource.startswith(_PREFIXES) and resource not in known:
                reader.refuse(resource, f"no node shows it; {_advise(resource, known)}")
    return findings.problems


def _advise(resource: str, known: Collection[str]) -> str:
    # Compared without the prefix, by which all names would be alike.
    prefix = resource[: resource.index("/") + 1]
    siblings = {name.removeprefix(prefix).lower(): name for name in sorted(known) if name.startswith(prefix)}
    close = difflib.get_close_matches(resource.removeprefix(prefix).lower(), siblings, n=1)
    return f"did you mean {siblings[close[0]]}?" if close else f"known are {', '.join(siblings.values())}"
