"""Who asks, and may they: tokens, role-based access control, the roles of a new cluster, questions about access.

Belongs here: everything that decides on a request before it is looked at, and what roles and bindings may not give away. Does
not belong here: what is wrong with roles as objects (`validation.access`).
"""
