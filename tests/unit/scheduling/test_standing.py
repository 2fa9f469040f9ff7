"""What the scheduler knows of rooms, after whatever may have happened."""

from __future__ import annotations

import logging

import hypothesis.strategies as st
from hypothesis import given

from gpushare.kube.watching import Synced
from gpushare.sandbox.loops.caches import Caches
from gpushare.sandbox.scheduling import amounts
from gpushare.sandbox.scheduling.standing import Standing
from support import rooms
from support import workload_objects as objects
from support.memory_cluster import MemoryCluster

NODES, PODS = ("a", "b"), ("one", "two", "three")
OWNER = objects.workload("ReplicaSet", "web")
LOOKS = st.fixed_dictionaries({"node": st.sampled_from(["", *NODES]), "phase": st.sampled_from(["Pending", "Failed"])})
START = (("nodes", dict.fromkeys(NODES, "4")), ("pods", {key: {"node": "", "phase": "Pending"} for key in PODS}))
SHOWN = st.one_of(
    st.tuples(st.just("nodes"), st.dictionaries(st.sampled_from(NODES), st.sampled_from(["1", "4"]))),
    st.tuples(st.just("pods"), st.dictionaries(st.sampled_from(PODS), LOOKS)),
    st.tuples(st.just("assume"), st.sampled_from(PODS), st.sampled_from(NODES)),
    st.tuples(st.just("give up"), st.sampled_from(PODS)),
)


def node(name: str, gpu: str):
    made = objects.node(name, gpu=gpu)
    return {**made, "metadata": {**made["metadata"], "uid": f"uid-{name}"}}


def pod(name: str, looks):
    made = objects.pod(name, owner=OWNER, gpu="1", **looks)
    return {**made, "metadata": {**made["metadata"], "uid": f"uid-{name}"}}


def seen(found):
    """What is left in each room, without what is zero."""
    return {
        name: (room.allocatable, {key: used for key, used in room.used.items() if used}, dict(room.siblings))
        for name, room in found.items()
    }


@given(st.lists(SHOWN, max_size=12))
def test_rooms_are_kept_up(steps):
    """Whatever comes, goes, is bound and given up again: the rooms are what counting everything anew would give."""
    caches = Caches(MemoryCluster(), logging.getLogger(__name__))
    standing = Standing(caches)
    assumed: dict[str, str] = {}
    for step, *what in (*START, *steps):
        known = {each["metadata"]["name"]: each for each in standing.pods}
        match step, what:
            case "nodes", [shown]:
                standing.nodes.see(Synced(tuple(node(name, gpu) for name, gpu in shown.items())))
            case "pods", [shown]:
                standing.pods.see(Synced(tuple(pod(name, looks) for name, looks in shown.items())))
                assumed = {name: at for name, at in assumed.items() if name in shown and not shown[name]["node"]}
            case "assume", [name, at] if name in known:
                standing.assume(known[name], at)
                assumed[name] = at
            case "give up", [name] if name in known:
                standing.give_up(known[name])
                assumed.pop(name, None)
        nodes = {each["metadata"]["name"]: each for each in standing.nodes}
        placed = [
            {**each, "spec": {**each["spec"], "nodeName": place}}
            for each in standing.pods
            if amounts.is_counted(each)
            and (place := each["spec"].get("nodeName") or assumed.get(each["metadata"]["name"])) in nodes
        ]
        assert seen(standing.rooms) == seen(rooms.build_rooms(nodes.values(), placed))
