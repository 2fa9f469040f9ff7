"""What a request does: the way from a verb and a kind to the store and back.

A request that may be comes to `dispatching`. What changes an object goes through `reviewing`, which asks `webhooks` between the
steps of `writing` (decode, complete, admit, check, own, store), or to `deleting`; what only looks goes to `reading` and
`watching`; doors of an object other than itself are in `subresources`. Belongs here: everything that needs the store and the
request. Does not belong here: knowledge about objects alone (`objects`, `validation`, `patching`), and what happens without a
request (`upkeep`).
"""
