"""What a process of ours offers to whoever runs it: HTTP for metrics, health, the scheduler extender and webhooks, and its log.

Belongs here: servers, TLS, the metrics registry of a process, the form of its log lines. Does not belong here: what the
figures and the lines mean.
"""
