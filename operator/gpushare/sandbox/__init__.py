"""A whole simulated GPU cluster in one process, in which everything of this project runs for real.

Belongs here: what stands in for Kubernetes, kubelets and GPUs. Does not belong here: anything that the product needs
outside the sandbox.
"""
