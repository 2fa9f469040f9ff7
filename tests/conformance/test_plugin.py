"""Our pools, answers and choices beside those that NVIDIA's device plugin was seen to give, node by node.

Devices are equal in any order, errors by the id or figure that they name; `support.comparing` says what else is equal.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from gpushare.agent import options
from gpushare.allocation import BestEffort, Topology
from gpushare.allocation.preferring import choose
from gpushare.domain.pools import Pool
from gpushare.errors import UsageError
from gpushare.kubelet.plugin import endpoint_of
from gpushare.sharing.responses import ContainerAnswer, RequestRefused, build_response
from support.comparing import comparable, is_as_good, shape_of, topology_of
from support.recorded_cases import Case, read_cases

ENDS = {
    # The recorded program ends with a status; what becomes of these here is in `test_what_ends_the_recorded_program`.
    "a100x2-mighalf-strategy-single", "a100x2-mighet-strategy-single", "a100x2-mps-migsingle", "t4x4-badversion",
    "t4x4-flag-unknown", "t4x4-strategy-bad", "t4x4-ts-replicas1",
}  # fmt: skip
ANOTHER_PART = {
    "t4x4-imex-required": "the agent looks for the channel's device node",
    "t4x4-nvml-initfail": "the agent's start without a driver",
    "t4x4-nolib-nofail": "the agent's start without a driver",
    "t4x4-mps4-nodaemon": "the agent asks the daemon; `test_agent` has it",
}
DEVIATES = {
    "t4x4-mps-and-ts": "mps and timeSlicing together are a problem, not a silent choice",
    "t4x4-unknownfield": "unknown keys are a problem, and the devices are served unshared",
    "t4x4-ts-devices-list": "devices: is honoured; those not listed stay unshared",
    "t4x4-ts-explicit-rename": "rename: is honoured",
}
CASES = read_cases("plugin", {*ENDS, *ANOTHER_PART, *DEVIATES})


def with_ids(cases: Sequence[Case]) -> list[Any]:
    return [pytest.param(case, id=case.name) for case in cases]


def offered(case: Case) -> Mapping[str, Pool]:
    """Resources with devices: one with an empty list counts as not offered."""
    return {name: pool for name, pool in case.built.pools.items() if pool.shares}


@pytest.mark.parametrize("case", with_ids(CASES))
def test_resources_and_devices(case: Case) -> None:
    """The same resources with the same device ids and NUMA nodes, all healthy."""
    assert case.built.problems == ()
    pools, recorded = offered(case), case.body["resources"]
    assert pools.keys() == recorded.keys()
    for name, resource in recorded.items():
        assert endpoint_of(name) == resource["endpoint"]
        found = {
            str(share.id): ("Healthy" if share.healthy else "Unhealthy", [share.numa_node])
            for share in pools[name].shares
        }
        assert found == {device["id"]: (device["health"], device["numa"]) for device in resource["devices"]}


@pytest.mark.parametrize("case", with_ids(CASES))
def test_allocate(case: Case) -> None:
    """The same environment, mounts, device nodes and CDI names for the same ids; the same requests refused."""
    for name, resource in case.body["resources"].items():
        pool = case.built.pools[name]
        for call in resource["allocate"]:
            variants = call.get("variants") or [call]
            if "error" in variants[0]:
                with pytest.raises(RequestRefused, match=variants[0]["error"]["names"]):
                    answers_of(case, pool, call["request"])
                continue
            found = [comparable(shape_of(answer)) for answer in answers_of(case, pool, call["request"])]
            assert found in [[comparable(answer) for answer in variant["response"]] for variant in variants]


def answers_of(case: Case, pool: Pool, request: Sequence[Sequence[str]]) -> list[ContainerAnswer]:
    return [build_response(pool, ids, case.response_options) for ids in request]


WITH_DEVICES = [case for case in CASES if case.body["resources"]]


@pytest.mark.parametrize("case", with_ids(WITH_DEVICES))
def test_preferred(case: Case) -> None:
    """As good a choice as any recorded one: valid, as close, and spread or stacked at least as well."""
    topology = topology_of(case.body["node"])
    for name, resource in case.body["resources"].items():
        pool = case.built.pools[name]
        for question in resource["preferred"]:
            available, must_include = question["available"], question["must_include"]
            found = choose(pool, available, must_include, question["size"], topology=topology)
            assert is_as_good(case.body["node"], pool, question, found)


@pytest.mark.parametrize(
    "case", with_ids([case for case in WITH_DEVICES if case.name.startswith(("a100x8", "t4x4-d"))])
)
def test_preferred_in_the_recorded_order(case: Case) -> None:
    """The very same GPUs, where ours are numbered as the recorded program was asked for them: it breaks ties by that order."""
    topology = topology_of(case.body["node"])
    for name, resource in case.body["resources"].items():
        for question in resource["preferred"]:
            asked = [case.built.pools[name].by_id[share_id].gpu_index for share_id in question["available"]]
            numbered = Topology.from_pair_scores(topology.matrix(asked))
            if set(question["must_include"]) <= set(question["available"]):
                required = [question["available"].index(share_id) for share_id in question["must_include"]]
                found = BestEffort().choose(numbered, range(len(asked)), required, question["size"])
                assert {question["available"][place] for place in found} == set(question.get("response") or ())


@pytest.mark.parametrize("case", with_ids([case for case in read_cases("plugin") if case.name in DEVIATES]))
def test_where_we_deviate(case: Case) -> None:
    """The deliberate differences of the configuration, each as it is documented."""
    counts = {name: len(pool.shares) for name, pool in offered(case).items()}

    if case.name in ("t4x4-mps-and-ts", "t4x4-unknownfield"):
        assert case.parsed.problems
        assert counts == {"nvidia.com/gpu": 4}
    elif case.name == "t4x4-ts-devices-list":
        assert counts == {"nvidia.com/gpu": 2 * 2 + 2}
    else:
        renamed = case.body["config"]["sharing"]["timeSlicing"]["resources"][0]["rename"]
        assert counts == {f"nvidia.com/{renamed.removeprefix('nvidia.com/')}": 8}


@pytest.mark.parametrize("case", with_ids([case for case in read_cases("plugin") if case.name in ENDS]))
def test_what_ends_the_recorded_program(case: Case) -> None:
    """Bad usage is an error of the command line; everything else is reported, and what is valid is served."""
    if case.name in ("t4x4-flag-unknown", "t4x4-strategy-bad"):
        with pytest.raises(UsageError):
            options.parse(case.body["flags"], case.body["env"])
        return
    counts = {name: len(pool.shares) for name, pool in case.built.pools.items()}
    reported = (*case.parsed.problems, *case.built.problems, *case.built.unserved)

    assert counts == {"nvidia.com/gpu": EXPECTED[case.name]}
    assert bool(reported) is (case.name != "t4x4-ts-replicas1")


EXPECTED = {
    "a100x2-mighalf-strategy-single": 0,
    "a100x2-mighet-strategy-single": 0,
    "a100x2-mps-migsingle": 14,
    "t4x4-badversion": 4,
    "t4x4-ts-replicas1": 4,
}
