"""How a client's change becomes a new state of an object, and who owns which field after it.

Belongs here: the three patch formats, server-side apply, and the bookkeeping of `managedFields` for every write; all pure. Does
not belong here: what happens to the new state then (`handling.writing`).
"""
