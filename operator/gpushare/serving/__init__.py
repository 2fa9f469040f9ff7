"""HTTP that we serve: metrics, health, the scheduler extender, webhooks.

Belongs here: servers, TLS, the metrics registry of a process. Does not belong here: what the figures mean.
"""
