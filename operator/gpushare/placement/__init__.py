"""Where a pod fits: requests for fractions of GPUs, nodes with what is free on them, policies.

Belongs here: pure decisions of the scheduler, over values. Does not belong here: HTTP, clocks, what was decided and is not
yet confirmed (`scheduler`), how a GPU is handed over (`sharing`, `agent`).

    pod -> requests (hami | aliyun, constraining) -> PodRequest ┐
    GPUNode -> nodes -> NodeState ──────────────────────────────┴-> fitting -> Fit
    index: many nodes at once · quotas: a namespace's limits · preempting: who would have to go
"""
