"""The process that only labels: `gpushare labels`, in the place of NVIDIA's GPU feature discovery.

Belongs here: when labels are read, what is said about failures, and the file or object that they are written to. Does not
belong here: what the labels are (`labels`), and how devices are found (`agent.discovery`), which the agent has in common.
"""
