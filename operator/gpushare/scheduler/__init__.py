"""The scheduler extender and the admission webhook for fractions.

Belongs here: protocol and reservations. Does not belong here: where a pod fits, which is `placement`.
"""
