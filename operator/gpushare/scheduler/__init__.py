"""The scheduler of fractions: an extender of kube-scheduler, and the admission webhook for pods that ask for parts of GPUs.

Belongs here: the protocols of both, the books of who holds what, what is reserved and on its way, which replica decides.
Does not belong here: where a pod fits, which is `placement`; what a container is told of its limits, which is the agent's.

    watches -> following -> books (nodes, pods) -> index ┐
    kube-scheduler -> answering -> extender -> deciding ─┴-> filter, prioritize, preempt
                                           └-> binding -> books (reserve) -> flights (wait) -> Binding with the decision
    API server -> answering -> admission -> mutating, reserved
"""
