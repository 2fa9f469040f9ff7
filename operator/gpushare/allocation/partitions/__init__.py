"""Dividing devices into sets of one size whose scores add up to the most: the search behind the best-effort policy.

Belongs here: figures, positions and bit masks. Does not belong here: GPUs, indices, what a request is.

Position p of n devices is bit n-1-p of a mask. So the first device is the highest bit, and of two sets the one that comes first
when sets are written out in order, (0, 1) before (0, 2), is the greater number. What does not fill a set is left over, in a set
of its own that is smaller and counts as well. Between divisions with equal totals the order decides: the first set is compared
first; each set is opened by the first device that is in none before it.
"""
