"""The process beside the agent that keeps MPS control daemons, one for each resource that is shared by MPS.

Belongs here: when a daemon is started, left alone, ended, and what is said about it. Does not belong here: which daemons a
configuration means (`sharing.mps`), how they are spoken to (`host.mps`), and how configurations are followed and judged,
which is the agent's: the two must never disagree.
"""
