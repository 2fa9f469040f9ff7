"""Which devices a request gets. A library of its own, usable without Kubernetes.

Belongs here: topology, policies, preferences among shares. Does not belong here: how devices were found or are handed
over.
"""

from gpushare.allocation.allocator import Allocator
from gpushare.allocation.best_effort import BestEffort
from gpushare.allocation.policies import Policy
from gpushare.allocation.simple import Simple
from gpushare.allocation.static_dgx import StaticDGX1, StaticDGX2
from gpushare.allocation.topology import Topology

__all__ = ["Allocator", "BestEffort", "Policy", "Simple", "StaticDGX1", "StaticDGX2", "Topology"]
