"""What the cluster should look like: a snapshot goes in, a plan of objects, configurations, labels, status and Events comes out.

`reading` makes the values of a `snapshot`; `build` decides, by `policies` (which one counts), `catalogs` and `assignments`
(which configuration a node gets), `nodes` (labels), `fleet` (all nodes of a pass, by `braking` and `capacity`), `components`
and `pruning` (objects, by `checking` and `filling`), `rollouts`, `results`, `status` and `events` (what people are told),
`unfollowed` (what they are told of nodes while no policy can be acted upon). The same without a change: `validation` judges
files, `preview` says what a change that `overlay` lays over a snapshot comes to, with what agents would report (`outlook`,
from `hardware`) and in which steps (`rehearsal`).

Belongs here: pure decisions of the controller. Does not belong here: YAML, clients, clocks.
"""
