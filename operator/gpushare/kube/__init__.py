"""The door to the Kubernetes API: one protocol (`cluster`), a full client (`client`) and a light one (`lean`).

Belongs here: requests, watches, translation of failures into `errors`. Does not belong here: any decision about what
to
write. Imports nothing by itself: the agent takes `lean` without paying for `client`.
"""
