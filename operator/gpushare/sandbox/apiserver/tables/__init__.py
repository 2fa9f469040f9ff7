"""Tables as `kubectl get` shows them. The server says columns and cells; kubectl drops the wide ones and lays them out.

Belongs here: which columns a kind has, and how an object becomes its cells, in a real server's words. Does not belong here:
who asks, and in which form the rest of an object is shown (`protocol.presenting`).
"""
