"""The scheduler of the sandbox: it binds pods to nodes and says in a real scheduler's words why it cannot.

Belongs here: filters, scores, extenders, preemption, texts, and the process around them. Does not belong here:
affinity between pods, topology spread constraints and volumes, which nothing in the sandbox uses.
"""

from __future__ import annotations

from gpushare.sandbox.scheduling.app import run
from gpushare.sandbox.scheduling.configuration import Profile, read_profiles

__all__ = ["Profile", "read_profiles", "run"]
