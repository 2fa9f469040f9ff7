"""What every small controller of the sandbox stands on: watch caches, a work queue, an event recorder.

Belongs here: machinery that knows no kind of workload. Does not belong here: any decision about pods or nodes.
"""
