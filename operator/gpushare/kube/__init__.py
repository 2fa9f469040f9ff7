"""The door to the Kubernetes API: one protocol (`cluster`), a full client (`client`) and a light one (`lean`).

Belongs here: requests, watches, credentials, translation of failures into `errors`, the upkeep of objects that we own
(`applying`), and the election of a leader (`leading`). Does not belong here: any decision about what to write. Imports
nothing by itself: the agent takes `lean` without paying for `client`.
"""
