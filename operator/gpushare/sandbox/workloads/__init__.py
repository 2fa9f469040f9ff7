"""Small controllers for DaemonSets, Deployments, ReplicaSets, Jobs and nodes, over the API like real ones.

Belongs here: what kube-controller-manager does for the walk-through. Does not belong here: access to the server's
store, and what the API server does by itself (defaults, garbage collection).
"""

from __future__ import annotations

from gpushare.sandbox.workloads.app import run

__all__ = ["run"]
