"""Resources that nobody serves, and the names that were meant."""

import pytest

from gpushare.views.misnomers import find_problems
from support.placements import container, pod_of

KNOWN = frozenset(
    {"nvidia.com/gpu", "nvidia.com/gpumem", "nvidia.com/gpucores", "nvidia.com/mig-1g.5gb", "aliyun.com/gpu-mem"}
)


@pytest.mark.parametrize(
    ("resource", "says"),
    [
        pytest.param("nvidia.com/gpumemory", "did you mean nvidia.com/gpumem?", id="longer"),
        pytest.param("nvidia.com/GPUMem", "did you mean nvidia.com/gpumem?", id="capital letters"),
        pytest.param("nvidia.com/mig-1g.10gb", "did you mean nvidia.com/mig-1g.5gb?", id="a profile that no node has"),
        pytest.param("aliyun.com/gpumem", "did you mean aliyun.com/gpu-mem?", id="of the same prefix"),
        pytest.param("aliyun.com/cores", "known are aliyun.com/gpu-mem", id="nothing near it"),
    ],
)
def test_unknown(resource: str, says: str) -> None:
    """Each is named with its place, and what it might be."""
    (problem,) = find_problems(pod_of(container("a", requests={resource: "1", "nvidia.com/gpu": "1"})), KNOWN)

    assert str(problem) == f"spec.containers[0].resources.requests[{resource}]: no node shows it; {says}"


def test_known() -> None:
    """What is known, and what is not ours to judge, is no problem; nor is a pod without resources."""
    known = container("a", requests={**dict.fromkeys(KNOWN, "1"), "cpu": "1", "example.com/gpumemory": "1"})

    assert not find_problems(pod_of(known, {"name": "b"}), KNOWN)
