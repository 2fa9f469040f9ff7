"""Pod security of the operator's namespace: whether privileged pods, such as the agent's, are let in. Called by `build`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from gpushare import names
from gpushare.api.clusterpolicy import ClusterPolicy

_PRIVILEGED: Final = dict.fromkeys(names.LABELS_POD_SECURITY, "privileged")


def build_change(stored: Mapping[str, str], policy: ClusterPolicy | None) -> Mapping[str, str] | None:
    """The labels that the namespace should have from us; None when it has them.

    Unlike NVIDIA's operator, which leaves them for ever, what is no longer wanted goes.

    Args:
        stored: those that are ours, and their values.
        policy: the active one; None: there is none.
    """
    is_wanted = policy is not None and policy.is_enabled("psa") and policy.is_enabled("device_plugin")
    wanted = _PRIVILEGED if is_wanted else {}
    return None if stored == wanted else wanted
