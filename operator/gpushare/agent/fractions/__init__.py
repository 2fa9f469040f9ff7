"""What an agent does on a node that gives out parts of GPUs: which pod is an Allocate for, and what does it get.

Belongs here: the pods of the node and the scheduler's decisions on them. Does not belong here: what a node offers (`sharing`),
and where a pod fits (`placement`). Loaded only by agents that are given such a configuration.
"""
