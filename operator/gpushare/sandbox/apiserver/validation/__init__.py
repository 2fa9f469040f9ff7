"""What a server refuses, in a real server's words: the rules of built-in kinds, of the metadata of all, of custom schemas.

Belongs here: pure checks of an object, or of an old and a new state of one; each yields every cause, not only the first. Does
not belong here: what depends on other objects or on who asks (`writing.admission`), and types and unknown fields
(`objects.decoding`).
"""
