"""Quotas of namespaces: what they allow, what is charged, and the cases of HAMi's own tests."""

from __future__ import annotations

from typing import Any

import pytest

from gpushare.placement.fitting import fit
from gpushare.placement.quotas import UNLIMITED, Charge, Quota, read_quota
from gpushare.placement.settings import RequestSettings
from support.placements import SETTINGS, alike, container, hami, request_of

MEMORY, CORES = "limits.nvidia.com/gpumem", "limits.nvidia.com/gpucores"


def quota(**hard: str) -> dict[str, Any]:
    return {"spec": {"hard": {{"memory": MEMORY, "cores": CORES}.get(name, name): text for name, text in hard.items()}}}


@pytest.mark.parametrize(
    ("quotas", "settings", "expected"),
    [
        pytest.param([], SETTINGS, UNLIMITED, id="none"),
        pytest.param([{"spec": {}}], SETTINGS, UNLIMITED, id="empty"),
        pytest.param([quota(pods="5")], SETTINGS, UNLIMITED, id="about something else"),
        pytest.param([quota(memory="2k", cores="200")], SETTINGS, Quota(2000, 200), id="both"),
        pytest.param(
            [quota(memory="5"), quota(memory="3", cores="7")], SETTINGS, Quota(3, 7), id="of several each holds"
        ),
        pytest.param(
            [quota(memory="5", cores="7")], RequestSettings(memory_factor=10), Quota(50, 7), id="memory factor"
        ),
        pytest.param([quota(memory="0")], SETTINGS, Quota(0, None), id="zero"),
        pytest.param([quota(memory="1.5")], SETTINGS, Quota(0, None), id="nonsense allows nothing"),
    ],
)
def test_read(quotas: list[dict[str, Any]], settings: RequestSettings, expected: Quota) -> None:
    """What the ResourceQuotas of a namespace allow together."""
    assert read_quota(quotas, settings) == expected


@pytest.mark.parametrize(
    ("allocated", "containers", "init", "expected"),
    [
        pytest.param(0, [100], [], True, id="empty"),
        pytest.param(0, [3000], [], False, id="too much at once"),
        pytest.param(0, [1024, 100], [], True, id="two containers"),
        pytest.param(0, [1024, 2000], [], False, id="two containers, too much together"),
        pytest.param(1024, [100], [], True, id="beside others"),
        pytest.param(1024, [2000], [], False, id="too much beside others"),
        pytest.param(1024, [1024, 100], [], False, id="too much with all"),
        pytest.param(100, [100, 100], [], True, id="little of all"),
        pytest.param(0, [], [1500, 1500], True, id="init containers: the most"),
        pytest.param(0, [500], [1024, 1024], True, id="init and app: the most"),
        pytest.param(0, [1], [2100], False, id="an init container too large"),
        pytest.param(2100, [0], [], True, id="who asks for nothing is let in"),
    ],
)
def test_memory(allocated: int, containers: list[int], init: list[int], expected: bool) -> None:
    """A limit of 2048 MiB, as in HAMi's tests."""
    room = Quota(memory_mib=2048).less(Charge(memory_mib=allocated))
    if containers == [0]:
        assert room.takes(Charge(memory_mib=0, cores=10)) is expected
        return
    request = request_of(
        container("cpu"),
        *(hami(f"app-{index}", gpus=1, mem=memory) for index, memory in enumerate(containers)),
        init=[hami(f"init-{index}", gpus=1, mem=memory) for index, memory in enumerate(init)],
    )
    assert (fit(alike(2), request, room).containers is not None) is expected


def test_zero_blocks() -> None:
    """A limit of 0 lets nobody in, and a lowered limit nobody more."""
    for room in (Quota(memory_mib=0), Quota(memory_mib=5).less(Charge(memory_mib=9))):
        assert fit(alike(1), request_of(hami(gpus=1, mem=1)), room).message == "1/1 ResourceQuotaNotFit"


def test_charge() -> None:
    """All GPUs of a pod at their busiest moment."""
    request = request_of(
        hami("a", gpus=2, mem=10, cores=5), hami("b", gpus=1, mem=3), init=[hami("i", gpus=1, mem=7, cores=90)]
    )

    assert fit(alike(2), request).charge == Charge(memory_mib=23, cores=90)
