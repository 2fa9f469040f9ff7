"""A node that should give out fractions and cannot: it shows 0 of them and says why. Pure; used by the agent."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from gpushare.agent.deciding import Decision
from gpushare.errors import Problem

NO_CLUSTER: Final = (
    "this agent knows no cluster, and so not what the scheduler has decided; whole GPUs and equal shares need none"
)


def withhold(decision: Decision, reason: str, *, path: str = "gpushare.fractions") -> Decision:
    """The decision without its shares of fractions. Everything else on the node is offered all the same."""
    pools = {
        name: replace(pool, shares=()) if pool.fractions is not None else pool for name, pool in decision.pools.items()
    }
    note = Problem(path=path, message=f"no fraction is given out: {reason}")
    return replace(decision, pools=pools, notes=(*decision.notes, note))
