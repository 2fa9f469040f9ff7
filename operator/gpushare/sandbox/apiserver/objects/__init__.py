"""What objects are made of: JSON values, times, quantities, paths, selectors; schemas, and what follows from them.

Belongs here: pure knowledge about one object at a time, how it is decoded and completed included. Does not belong here: what is
wrong with an object (`validation`), how it changes (`patching`), where it is kept.
"""
