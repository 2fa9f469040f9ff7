"""What a server does without being asked: what is in a new cluster, and what goes when something else goes.

In a real cluster most of it is the work of controllers. Belongs here: what no API server can be without. Does not belong here:
controllers of workloads, the scheduler, kubelets, which speak HTTP like everybody else.
"""
