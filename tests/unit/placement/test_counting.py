"""How the kubelet counts init containers, sidecars and app containers on one GPU."""

from __future__ import annotations

import pytest

from gpushare.domain.fractions import Grant
from gpushare.placement.counting import charge_of, holding_of
from gpushare.placement.gpus import Use
from gpushare.placement.quotas import Charge
from gpushare.placement.shapes import Kind, kinds_of

INIT, SIDE, APP = Kind.INIT, Kind.SIDECAR, Kind.APP


@pytest.mark.parametrize(
    ("containers", "memory", "cores", "slots"),
    [
        pytest.param([(APP, 5, 10)], 5, 10, 1, id="one"),
        pytest.param([(APP, 5, 10), (APP, 6, 20)], 11, 30, 2, id="two"),
        pytest.param([(INIT, 9, 50), (APP, 5, 10), (APP, 6, 20)], 11, 50, 2, id="smaller init container"),
        pytest.param([(INIT, 19, 50), (APP, 5, 10)], 19, 50, 1, id="larger init container"),
        pytest.param([(INIT, 5, 1), (INIT, 9, 2), (APP, 1, 3)], 9, 3, 1, id="init containers one after the other"),
        pytest.param([(INIT, 9, 1)], 9, 1, 1, id="only an init container"),
        pytest.param([(SIDE, 5, 10), (APP, 6, 20)], 11, 30, 2, id="a sidecar stays"),
        pytest.param([(SIDE, 5, 10), (INIT, 8, 5), (APP, 2, 5)], 13, 15, 2, id="an init container beside a sidecar"),
        pytest.param([(INIT, 8, 5), (SIDE, 5, 10), (APP, 2, 5)], 8, 15, 2, id="an init container before a sidecar"),
        pytest.param([(INIT, 8, 5), (SIDE, 5, 5), (INIT, 8, 5), (APP, 2, 5)], 13, 10, 2, id="one before and one after"),
    ],
)
def test_one_gpu(containers: list[tuple[Kind, int, int]], memory: int, cores: int, slots: int) -> None:
    """The most at any moment; shares of init containers go to the next."""
    grants = {f"c{n}": (Grant("GPU-0", one[1], one[2]),) for n, one in enumerate(containers)}
    kinds = {f"c{n}": one[0] for n, one in enumerate(containers)}

    assert holding_of(grants, kinds) == {"GPU-0": Use(memory, cores, slots)}
    assert charge_of(grants, kinds) == Charge(memory, cores)


def test_each_gpu_for_itself() -> None:
    """Two GPUs are busiest at different moments; the quota is charged with the pod's own busiest."""
    grants = {"init": (Grant("GPU-0", 8, 1),), "app": (Grant("GPU-1", 5, 1),)}
    kinds = {"init": INIT, "app": APP}

    assert holding_of(grants, kinds) == {"GPU-0": Use(8, 1, 1), "GPU-1": Use(5, 1, 1)}
    assert charge_of(grants, kinds) == Charge(8, 1)


def test_marks() -> None:
    """Who wants a GPU alone, and who has no limit of compute, is known of the GPU; an unknown container is no init container."""
    grants = {
        "a": (Grant("GPU-0", 1, 100),),
        "b": (Grant("GPU-1", 1), Grant("GPU-2", 1, 5)),
        "c": (Grant("GPU-2", 1, 5),),
    }

    assert holding_of(grants, {}) == {
        "GPU-0": Use(1, 100, 1, alone=1),
        "GPU-1": Use(1, 0, 1, unlimited=1),
        "GPU-2": Use(2, 10, 2),
    }


def test_units_are_no_matter_of_the_quota() -> None:
    """It is written in HAMi's words; units of memory Kubernetes itself counts right."""
    assert charge_of({"a": (Grant("GPU-0", 1024, 50, units=1),)}, {}) == Charge(0, 0)


def test_kinds() -> None:
    """Containers in the order of the kubelet; only an init container that is always restarted is a sidecar."""
    pod = {
        "spec": {
            "initContainers": [{"name": "i"}, {"name": "s", "restartPolicy": "Always"}],
            "containers": [{"name": "a", "restartPolicy": "Always"}],
        }
    }

    assert list(kinds_of(pod).items()) == [("i", INIT), ("s", SIDE), ("a", APP)]
