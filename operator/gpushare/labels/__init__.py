"""The node labels of GPU feature discovery: one module a label family, merged in order.

Belongs here: facts to label values, always legal ones. Does not belong here: writing them anywhere.
"""
