"""The steps of the walk-through of fractions: both dialects, the tools, and a while without the scheduler. Read by `engine`."""

from __future__ import annotations

from gpushare.sandbox.tour.engine import Step, Type
from gpushare.sandbox.tour.steps import capacity

_PODS = "kubectl get pods --no-headers"
_TAINTS = "kubectl get node gpu02 -o jsonpath='{.spec.taints}'"


def _running(selector: str, number: int) -> Type:
    """So many pods run."""
    line = f"{_PODS} {selector} --field-selector=status.phase=Running | wc -l | tr -d ' '"
    return Type(line=line, shows=(str(number),), wait=True)


def _shown(text: str, times: int) -> Type:
    """How often something stands in Alibaba's table of gpu01, in whichever order the GPUs were picked."""
    line = f"kubectl inspect cgpu gpu01 | grep -oE ' {text} ' | wc -l | tr -d ' '"
    return Type(line=line, shows=(str(times),), wait=True)


HAMI = Step(
    title="A part of a GPU, in HAMi's dialect",
    proves="One label made ten slots of a GPU, and the pod got its memory and compute of it; one that fits nowhere says why.",
    lines=(
        Type(line="kubectl label node gpu02 gpu=on", shows=("node/gpu02 labeled",)),
        capacity("gpu02", "nvidia.com/gpu", "10"),
        Type(line=_TAINTS, shows=('"key":"gpushare.dev/fractions"',), wait=True),
        Type(line="kubectl apply -f gpu-pod.yaml", shows=("pod/gpu-pod created",)),
        Type(line="kubectl get pod gpu-pod -o wide", shows=("Running", "gpu02"), wait=True),
        Type(
            line="kubectl get pod gpu-pod -o jsonpath='{.metadata.annotations}'",
            shows=("gpushare.dev/decision", "hami.io/vgpu-node ... gpu02"),
        ),
        Type(
            line="kubectl logs gpu-pod",
            shows=("NVIDIA_VISIBLE_DEVICES=GPU-", "CUDA_DEVICE_MEMORY_LIMIT_0=3000m", "CUDA_DEVICE_SM_LIMIT=30"),
            wait=True,
        ),
        Type(line="kubectl gpushare top gpu02", shows=("default/gpu-pod (cuda) 3000 MiB, 30 %",), wait=True),
        Type(line="kubectl gpushare explain gpu-pod", shows=("why this GPU binpack", "limited by nothing"), wait=True),
        Type(line="kubectl apply -f too-big.yaml", shows=("created",)),
        Type(
            line="kubectl get events", shows=("FailedScheduling ... pod/too-big ... CardInsufficientMemory",), wait=True
        ),
        Type(line="kubectl gpushare explain too-big", shows=("gpu02 1 of 1 GPUs: the GPU has too little free memory",)),
        Type(line="kubectl delete pod too-big", shows=("deleted",)),
    ),
)

PLAIN = Step(
    title="Whole GPUs beside it",
    proves="A pod that asks for a whole GPU keeps away from nodes that give out parts, and nobody rewrites it.",
    lines=(
        Type(
            line="kubectl run whole --image=cuda --restart=Never"
            """ --overrides='{"spec": {"containers": [{"name": "whole", "image": "cuda", """
            """"resources": {"limits": {"nvidia.com/gpu": "1"}}}]}}'""",
            shows=("pod/whole created",),
        ),
        Type(line="kubectl get pod whole -o wide", shows=("Running", "gpu01"), wait=True),
        Type(line="kubectl get pod whole -o jsonpath='{.spec.schedulerName}'", shows=("default-scheduler",)),
        Type(line="kubectl delete pod whole", shows=("deleted",)),
    ),
)

ALIYUN = Step(
    title="Units of memory, in Alibaba's dialect: spread",
    proves="4 x 15 GiB are 60 units; three pods of four went to three GPUs, as kubectl inspect cgpu shows.",
    lines=(
        Type(
            line="kubectl label node gpu01 ack.node.gpu.schedule=cgpu ack.node.gpu.placement=spread",
            shows=("node/gpu01 labeled",),
        ),
        capacity("gpu01", "aliyun.com/gpu-mem", "60"),
        capacity("gpu01", "aliyun.com/gpu-count", "4"),
        capacity("gpu01", "nvidia.com/gpu", "0"),
        Type(line="kubectl apply -f gpu-mem-job.yaml", shows=("job.batch/gpu-mem created",)),
        _running("-l app=gpu-mem", 3),
        Type(line="kubectl inspect cgpu gpu01", shows=("gpu01 127.0.0.1 ... 12/60", "12/60 (20%)"), wait=True),
        _shown("4/15", 3),
        Type(line="kubectl inspect cgpu -d gpu01", shows=("default ... Allocated : 12 (20%)",)),
    ),
)

BINPACK = Step(
    title="The same Job, packed",
    proves="Another label, and the three pods are on one GPU: 12 of its 15 GiB.",
    lines=(
        Type(line="kubectl delete job gpu-mem", shows=("deleted",)),
        Type(line=f"{_PODS} -l app=gpu-mem", shows=("No resources found",), wait=True),
        Type(line="kubectl label node gpu01 ack.node.gpu.placement=binpack --overwrite", shows=("labeled",)),
        Type(
            line="kubectl get gpunode gpu01 -o jsonpath='{.status.fractions.placement}'", shows=("binpack",), wait=True
        ),
        Type(line="kubectl apply -f gpu-mem-job.yaml", shows=("created",)),
        _running("-l app=gpu-mem", 3),
        _shown("12/15", 1),
        Type(line="kubectl inspect gpushare", shows=("12/60", "3000/40960"), wait=True),
    ),
)

WITHOUT = Step(
    title="What cannot be, and what happens without the scheduler",
    proves="Refusals say what to write; while the scheduler is away only pods with fractions wait, and nothing else notices.",
    lines=(
        Type(
            line="kubectl apply -f two-dialects.yaml",
            code=1,
            shows=('admission webhook "fractions.gpushare.dev" denied the request', "in one of the two dialects"),
        ),
        Type(line="kubectl scale -n gpu-operator deploy/gpushare-scheduler --replicas=0", shows=("scaled",)),
        Type(line=f"{_PODS} -n gpu-operator -l app=gpushare-scheduler", shows=("No resources found",), wait=True),
        Type(
            line="kubectl apply -f too-big.yaml",
            code=1,
            shows=("failed calling webhook", 'no endpoints available for service "gpushare-scheduler"'),
        ),
        Type(line="kubectl run plain --image=web", shows=("pod/plain created",)),
        Type(line="kubectl get pod plain", shows=("Running",), wait=True),
        Type(line="kubectl scale -n gpu-operator deploy/gpushare-scheduler --replicas=1", shows=("scaled",)),
        Type(
            line="kubectl rollout status -n gpu-operator deploy/gpushare-scheduler --timeout=30s",
            shows=("successfully",),
        ),
        Type(line="kubectl apply -f too-big.yaml", shows=("pod/too-big created",), wait=True),
        Type(line="kubectl get pod too-big", shows=("Pending",)),
        Type(line="kubectl inspect cgpu gpu01", shows=("12/60 (20%)",)),
    ),
)

OFF = Step(
    title="Fractions off",
    proves="Without the labels the nodes show whole GPUs again.",
    lines=(
        Type(line="kubectl delete job/gpu-mem pod/gpu-pod pod/too-big pod/plain", shows=("deleted",)),
        Type(line=_PODS, shows=("No resources found",), wait=True),
        Type(line="kubectl label node gpu01 ack.node.gpu.schedule- ack.node.gpu.placement-", shows=("unlabeled",)),
        Type(line="kubectl label node gpu02 gpu-", shows=("unlabeled",)),
        capacity("gpu01", "nvidia.com/gpu", "4"),
        capacity("gpu02", "nvidia.com/gpu", "2"),
        Type(line=_TAINTS, hides=("gpushare.dev/fractions",), wait=True),
        Type(line="kubectl inspect cgpu", shows=("No node serves fractions of GPUs.",), wait=True),
    ),
)

STEPS = (HAMI, PLAIN, ALIYUN, BINPACK, WITHOUT, OFF)
