"""What users write: ClusterPolicy and sharing configurations, as pydantic models, parsed into models or problems.

Belongs here: schemas, strict parsing, messages in the user's words. Does not belong here: what follows from a
configuration.
"""
