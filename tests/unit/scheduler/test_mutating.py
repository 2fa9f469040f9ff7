"""Admission: what is filled in, what is refused and in which words. Table E of what HAMi's webhook does, and where we differ."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from gpushare.placement.quotas import UNLIMITED, Quota
from gpushare.placement.settings import RequestSettings
from gpushare.scheduler.mutating import AdmissionSettings, judge
from gpushare.serving.reviews import Review, Verdict
from support.placements import aliyun, container, hami
from support.schedulers import pod

COUNT, MEM, PERCENT, CORES = (
    "nvidia.com/gpu",
    "nvidia.com/gpumem",
    "nvidia.com/gpumem-percentage",
    "nvidia.com/gpucores",
)
CLAIMING = AdmissionSettings(requests=RequestSettings(claim_plain_gpu=True))


def admit(asked: dict[str, Any], settings: AdmissionSettings = CLAIMING, room: Quota = UNLIMITED) -> Verdict:
    return judge(Review(uid="u", operation="CREATE", namespace="default", manifest=asked), settings, room)


def limits(verdict: Verdict, index: int = 0) -> Mapping[str, str]:
    assert verdict.refusal is None, verdict.refusal
    return verdict.manifest["spec"]["containers"][index]["resources"]["limits"]


def refusal(verdict: Verdict) -> str:
    assert verdict.refusal is not None
    assert 400 <= verdict.refusal.code < 500
    return verdict.refusal.message


@pytest.mark.parametrize(
    ("asked", "expected"),
    [
        pytest.param(hami(mem=3000), {COUNT: "1", MEM: "3000"}, id="memory only: one GPU"),
        pytest.param(hami(cores=30, mem=1), {COUNT: "1", CORES: "30", MEM: "1"}, id="memory and compute: one GPU"),
        pytest.param(hami(cores=30), {COUNT: "1", CORES: "30"}, id="compute only: one GPU"),
        pytest.param(hami(percent=50), {COUNT: "1", PERCENT: "50"}, id="percent only: one GPU"),
        pytest.param(hami(gpus=1, percent=100), {COUNT: "1", PERCENT: "100", CORES: "100"}, id="all memory: alone"),
        pytest.param(hami(gpus=1, percent=0), {COUNT: "1", PERCENT: "0", CORES: "100"}, id="percent 0 is none: alone"),
        pytest.param(hami(gpus=2), {COUNT: "2", CORES: "100"}, id="nothing but GPUs: alone"),
        pytest.param(hami(gpus=1, percent=50), {COUNT: "1", PERCENT: "50"}, id="half the memory: shared"),
        pytest.param(hami(gpus=1, mem=100), {COUNT: "1", MEM: "100"}, id="some memory: shared"),
        pytest.param(hami(gpus=1, cores=20), {COUNT: "1", CORES: "20"}, id="compute was said: kept"),
    ],
)
def test_amounts(asked: dict[str, Any], expected: dict[str, str]) -> None:
    """What is missing is filled in; limits and requests say the same."""
    verdict = admit(pod("a", asked))

    assert limits(verdict) == expected
    requests = verdict.manifest["spec"]["containers"][0]["resources"]["requests"]
    assert all(expected[name] == amount for name, amount in requests.items())
    assert admit(verdict.manifest).manifest == verdict.manifest


def test_compute_that_is_only_requested_is_kept() -> None:
    """A request counts as what was said."""
    asked = {"name": "main", "resources": {"limits": {COUNT: "1"}, "requests": {CORES: "30"}}}

    assert limits(admit(pod("a", asked))) == {COUNT: "1"}


def test_other_names() -> None:
    """An administrator may have called the resources otherwise; without a name for memory, a GPU is always whole."""
    settings = AdmissionSettings(
        requests=RequestSettings(
            count="example.com/gpu", memory="", memory_percentage="", cores="example.com/cores", claim_plain_gpu=True
        )
    )
    asked = {"name": "main", "resources": {"limits": {"example.com/gpu": "1", MEM: "100"}}}

    expected = {"example.com/gpu": "1", COUNT: "1", "example.com/cores": "100", MEM: "100"}
    assert limits(admit(pod("a", asked), settings)) == expected


@pytest.mark.parametrize(
    ("asked", "expected"),
    [
        pytest.param({"example.com/gpu": "2", MEM: "100"}, {COUNT: "2"}, id="number of GPUs"),
        pytest.param({MEM: "100"}, {"example.com/gpu": "1", COUNT: "1"}, id="no number"),
        pytest.param({"example.com/units": "4"}, {"aliyun.com/gpu-mem": "4"}, id="units"),
    ],
)
def test_the_kubelet_has_its_own_names(asked: dict[str, str], expected: dict[str, str]) -> None:
    """However an administrator has called them: nodes give out nvidia.com/gpu and aliyun.com/gpu-mem."""
    settings = AdmissionSettings(requests=RequestSettings(count="example.com/gpu", aliyun_memory="example.com/units"))
    labels = {"aliyun.com/gpu-count": "2"} if "example.com/units" in asked else {}
    verdict = admit(pod("a", {"name": "main", "resources": {"limits": dict(asked)}}, labels=labels), settings)

    assert limits(verdict) == asked | expected
    assert admit(verdict.manifest, settings).manifest == verdict.manifest


@pytest.mark.parametrize(
    ("asked", "says"),
    [
        pytest.param(hami(gpus=1, percent=101), "write 1 to 100", id="more than all"),
        pytest.param(hami(gpus=1, percent=-1), "negative", id="negative percent"),
        pytest.param(hami(gpus=1, mem="3Gi"), "write a plain number", id="bytes"),
        pytest.param(hami(gpus=1, mem="1.5"), "not whole", id="fraction"),
        pytest.param(hami(gpus=1, mem=10**12), "more than there can be", id="overflow"),
        pytest.param(hami(gpus=0, mem=100), "write how many", id="memory without a GPU"),
        pytest.param(aliyun(cores=10), "needs memory too", id="compute without memory"),
        pytest.param(aliyun(units=1, cores=7), "write 5, 10, 15", id="compute in odd steps"),
    ],
)
def test_nonsense_is_refused(asked: dict[str, Any], says: str) -> None:
    """With the place and what to write instead; 422, as the API server says of what is invalid."""
    verdict = admit(pod("a", asked), AdmissionSettings())

    assert says in refusal(verdict)
    assert "spec.containers[0].resources.limits[" in refusal(verdict)
    assert verdict.refusal is not None
    assert (verdict.refusal.code, verdict.refusal.reason) == (422, "Invalid")


def test_two_dialects() -> None:
    """No node serves both."""
    assert "one of the two dialects" in refusal(admit(pod("a", hami(gpus=1, mem=1), aliyun("b", 1))))


@pytest.mark.parametrize(
    ("name", "settings", "expected", "warns"),
    [
        pytest.param("", AdmissionSettings(), "gpushare-scheduler", False, id="none: ours"),
        pytest.param(
            "default-scheduler", AdmissionSettings(), "gpushare-scheduler", False, id="the API server's: ours"
        ),
        pytest.param(
            "default-scheduler",
            AdmissionSettings(force_scheduler=False),
            "default-scheduler",
            True,
            id="not forced: kept",
        ),
        pytest.param("volcano", AdmissionSettings(), "volcano", True, id="another: kept, and said"),
        pytest.param("gpushare-scheduler", AdmissionSettings(), "gpushare-scheduler", False, id="ours already"),
        pytest.param(
            "default-scheduler", AdmissionSettings(scheduler_name=""), "default-scheduler", False, id="left alone"
        ),
    ],
)
def test_scheduler_name(name: str, settings: AdmissionSettings, expected: str, warns: bool) -> None:
    """Whom the pod is given to."""
    more = {"schedulerName": name} if name else {}
    verdict = admit(pod("a", hami(gpus=1, mem=1), **more), settings)

    assert verdict.manifest["spec"].get("schedulerName") == expected
    assert bool(verdict.warnings) is warns


def test_what_else_is_filled_in() -> None:
    """A toleration, a runtime class, the priority and the rule for compute: in containers with GPUs only."""
    settings = AdmissionSettings(runtime_class="nvidia", core_policy="force", hide_gpus=True)
    first = hami(gpus=1, mem=1)
    first["resources"]["limits"]["nvidia.com/priority"] = "1"
    second = {"name": "other", "env": [{"name": "A", "value": "b"}]}
    spec = admit(pod("a", first, second), settings).manifest["spec"]

    assert spec["runtimeClassName"] == "nvidia"
    assert spec["tolerations"] == [{"key": "gpushare.dev/fractions", "operator": "Exists", "effect": "NoSchedule"}]
    assert spec["containers"][0]["env"] == [
        {"name": "CUDA_TASK_PRIORITY", "value": "1"},
        {"name": "GPU_CORE_UTILIZATION_POLICY", "value": "force"},
    ]
    assert spec["containers"][1]["env"] == [
        {"name": "A", "value": "b"},
        {"name": "NVIDIA_VISIBLE_DEVICES", "value": "none"},
    ]


def test_what_the_writer_has_said_stays() -> None:
    """A runtime class, a toleration, a variable that is not reserved."""
    settings = AdmissionSettings(runtime_class="nvidia", core_policy="disable")
    tolerations = [{"operator": "Exists"}]
    asked = {**hami(gpus=1, mem=1), "env": [{"name": "GPU_CORE_UTILIZATION_POLICY", "value": "force"}]}
    spec = admit(pod("a", asked, runtimeClassName="other", tolerations=tolerations), settings).manifest["spec"]

    assert spec["runtimeClassName"] == "other"
    assert spec["tolerations"][0] == {"operator": "Exists"}
    assert spec["containers"][0]["env"] == [{"name": "GPU_CORE_UTILIZATION_POLICY", "value": "force"}]


def test_alibabas_dialect() -> None:
    """Nothing is added to what it asks for; its nodes have no taint."""
    verdict = admit(pod("a", aliyun(units=4)))

    assert limits(verdict) == {"aliyun.com/gpu-mem": "4"}
    assert verdict.manifest["spec"]["schedulerName"] == "gpushare-scheduler"
    assert "tolerations" not in verdict.manifest["spec"]


@pytest.mark.parametrize(
    ("asked", "settings"),
    [
        pytest.param(pod("a", {"name": "main"}, schedulerName="default-scheduler"), CLAIMING, id="no GPU"),
        pytest.param(pod("a", hami(gpus=1)), AdmissionSettings(), id="a whole GPU, which is not claimed"),
        pytest.param(
            pod("a", {"name": "main", "securityContext": {"privileged": True}}),
            CLAIMING,
            id="privileged, without a GPU",
        ),
    ],
)
def test_pods_that_do_not_concern_us(asked: dict[str, Any], settings: AdmissionSettings) -> None:
    """Nothing of them is touched."""
    verdict = admit(asked, settings)

    assert verdict.manifest is asked
    assert verdict.refusal is None


def test_a_label_alone_asks_for_nothing() -> None:
    """Admitted, and said."""
    [warning] = admit(pod("a", {"name": "main"}, labels={"aliyun.com/gpu-count": "2"})).warnings

    assert "metadata.labels[aliyun.com/gpu-count]" in warning


@pytest.mark.parametrize(
    ("asked", "says"),
    [
        pytest.param(
            pod("a", hami(gpus=1, mem=1), {"name": "side", "securityContext": {"privileged": True}}),
            'container "side" is privileged',
            id="privileged",
        ),
        pytest.param(
            pod("a", hami(gpus=1, mem=1), initContainers=[{"name": "i", "securityContext": {"privileged": True}}]),
            'container "i" is privileged',
            id="privileged init container",
        ),
        pytest.param(
            pod("a", hami(gpus=1, mem=1), nodeName="gpu01"), "kubernetes.io/hostname: gpu01", id="nodeName is set"
        ),
    ],
)
def test_refused(asked: dict[str, Any], says: str) -> None:
    """With a text that says what to write instead."""
    assert says in refusal(admit(asked))


@pytest.mark.parametrize(
    "name",
    [
        "NVIDIA_VISIBLE_DEVICES",
        "CUDA_DEVICE_MEMORY_LIMIT",
        "CUDA_DEVICE_MEMORY_LIMIT_0",
        "CUDA_DEVICE_SM_LIMIT_1",
        "CUDA_DEVICE_MEMORY_SHARED_CACHE",
        "CUDA_DISABLE_CONTROL",
        "GPU_CORE_UTILIZATION_POLICY",
        "CUDA_MPS_PINNED_DEVICE_MEM_LIMIT",
        "ALIYUN_COM_GPU_MEM_CONTAINER",
        "CGPU_DISABLE",
    ],
)
def test_reserved_variables(name: str) -> None:
    """They would win over what the device plugin says, so a pod could lift its own limit."""
    asked = {**hami(gpus=1, mem=1), "env": [{"name": name, "value": "x"}]}

    assert f'container "main" sets {name}' in refusal(admit(pod("a", asked)))
    assert admit(pod("a", asked), AdmissionSettings(allowed_env=frozenset({name}))).refusal is None


@pytest.mark.parametrize(
    ("said", "written", "refused"),
    [
        pytest.param("default", "disable", True, id="compute without a limit"),
        pytest.param("force", "default", True, id="less often than the administrator says"),
        pytest.param("default", "force", False, id="more often"),
        pytest.param("disable", "disable", False, id="as the administrator says"),
    ],
)
def test_rule_for_compute(said: str, written: str, refused: bool) -> None:
    """A pod may have its compute limited more often than by the administrator's rule, not more seldom."""
    asked = {**hami(gpus=1, mem=1), "env": [{"name": "GPU_CORE_UTILIZATION_POLICY", "value": written}]}

    assert (admit(pod("a", asked), AdmissionSettings(core_policy=said)).refusal is not None) is refused


def test_harmless_values() -> None:
    """A container that asks to see no GPU may."""
    other = {"name": "other", "env": [{"name": "NVIDIA_VISIBLE_DEVICES", "value": "none"}]}

    assert admit(pod("a", hami(gpus=1, mem=1), other)).refusal is None


def test_decisions_are_the_schedulers() -> None:
    """Written by hand, changed, or taken away, on create and on update; unchanged ones are nobody's business."""
    mine = pod("a", {"name": "main"}, annotations={"gpushare.dev/decision": "{}"})
    assert "metadata.annotations: gpushare.dev/decision is the scheduler's" in refusal(admit(mine))

    def update(before: dict[str, Any], after: dict[str, Any]) -> Verdict:
        review = Review(uid="u", operation="UPDATE", namespace="default", manifest=after, before=before)
        return judge(review, CLAIMING, UNLIMITED)

    plain = pod("a", {"name": "main"})
    labelled = {**mine, "metadata": {**mine["metadata"], "labels": {"a": "b"}}}
    assert update(mine, labelled).refusal is None
    assert update(mine, plain).refusal is not None
    assert update(plain, mine).refusal is not None
    assert update(plain, pod("a", {"name": "main"}, annotations={"ALIYUN_COM_GPU_MEM_IDX": "0"})).refusal is not None


@pytest.mark.parametrize(
    ("containers", "init", "fits"),
    [
        pytest.param([hami(gpus=1, mem=1000)], [], True, id="within"),
        pytest.param([hami(gpus=1, mem=3000)], [], False, id="over"),
        pytest.param([hami(gpus=3, mem=1000)], [], False, id="times the number of GPUs"),
        pytest.param([hami("a", 1, mem=1500), hami("b", 1, mem=1500)], [], False, id="sum of containers"),
        pytest.param([hami(gpus=1, mem=1500)], [hami("i", 1, mem=1500)], True, id="init containers come before"),
        pytest.param([hami(gpus=1, mem=100)], [hami("i", 1, mem=2100)], False, id="an init container over it"),
        pytest.param([hami(gpus=1, percent=50)], [], True, id="a percentage is judged where its GPU is known"),
    ],
)
def test_quota(containers: list[dict[str, Any]], init: list[dict[str, Any]], fits: bool) -> None:
    """What can be said before a GPU is chosen."""
    verdict = admit(pod("a", *containers, initContainers=init), room=Quota(memory_mib=2048))

    assert (verdict.refusal is None) is fits
    if not fits:
        assert "exceeds the quota of namespace default" in refusal(verdict)
        assert "2048 MiB are left" in refusal(verdict)


def test_quota_is_in_words_of_hami() -> None:
    """What a pod asks for in Alibaba's words is none of it, be it compute."""
    assert admit(pod("a", aliyun(units=2, cores=30)), room=Quota(memory_mib=0, cores=10)).refusal is None


def test_sidecars_and_containers_without_resources() -> None:
    """All containers of a pod are looked at, of whichever kind."""
    sidecar = {**hami("side", mem=100), "restartPolicy": "Always"}
    spec = admit(pod("a", container(), initContainers=[sidecar])).manifest["spec"]

    assert spec["initContainers"][0]["resources"]["limits"] == {COUNT: "1", MEM: "100"}
    assert spec["containers"][0] == container()
