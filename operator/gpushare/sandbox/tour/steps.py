"""The steps of the walk-through, in the words and with the commands that people know. Read by `engine`."""

from __future__ import annotations

from gpushare.sandbox.tour.engine import Step, Type

_POLICY = "kubectl patch clusterpolicies.nvidia.com/cluster-policy -n gpu-operator"


def _name_config(name: str, default: str = "") -> str:
    keys = f'"name": "{name}", "default": "{default}"' if default else f'"name": "{name}"'
    return f"""{_POLICY} --type merge -p '{{"spec": {{"devicePlugin": {{"config": {{{keys}}}}}}}}}'"""


_NO_CONFIG = f"""{_POLICY} --type json -p '[{{"op": "remove", "path": "/spec/devicePlugin/config"}}]'"""
_RUNNING = "kubectl get pods -l app=time-slicing-verification --field-selector=status.phase=Running -o name | wc -l | tr -d ' '"


def capacity(node: str, resource: str, shows: str) -> Type:
    """Capacity and allocatable of one resource, `16 16`."""
    key = resource.replace(".", r"\.")
    paths = " ".join(f"{{.status.{part}.{key}}}" for part in ("capacity", "allocatable"))
    return Type(line=f"kubectl get node {node} -o jsonpath='{paths}'", shows=(f"{shows} {shows}",), wait=True)


def _node_holds(node: str, *labels: str, capacity: str) -> Type:
    """`kubectl describe node` shows labels and, in Capacity and Allocatable, a count of whole resource names."""
    count = f"Capacity: ... {capacity} ... Allocatable: ... {capacity} "
    return Type(line=f"kubectl describe node {node}", shows=(*labels, count), wait=True)


ALL_NODES = Step(
    title="One configuration for all nodes: every GPU is shared by four",
    proves="4 GPUs became 16, the labels say so, and events tell what happened.",
    lines=(
        Type(
            line="kubectl create -n gpu-operator -f time-slicing-config-all.yaml",
            shows=("configmap/time-slicing-config-all created",),
        ),
        Type(
            line=_name_config("time-slicing-config-all", "any"),
            shows=("clusterpolicy.nvidia.com/cluster-policy patched",),
        ),
        _node_holds(
            "gpu01",
            "nvidia.com/gpu.count=4",
            "nvidia.com/gpu.product=Tesla-T4-SHARED",
            "nvidia.com/gpu.replicas=4",
            "nvidia.com/gpu.sharing-strategy=time-slicing",
            capacity="nvidia.com/gpu: 16",
        ),
        Type(line="kubectl get gpunodes", shows=("gpu01 any",), wait=True),
        Type(
            line="kubectl get events -n gpu-operator --sort-by='.lastTimestamp'",
            shows=("configmap/time-slicing-config-all",),
            wait=True,
        ),
        Type(line="kubectl describe clusterpolicy", shows=("Events: ... ConfigApplied ... any (revision",), wait=True),
    ),
)

FIVE_PODS = Step(
    title="Five pods on four GPUs, then one too many",
    proves="A shared GPU takes several pods; the seventeenth finds no share and says what is missing.",
    lines=(
        Type(line="kubectl apply -f time-slicing-verification.yaml", shows=("time-slicing-verification created",)),
        Type(line="kubectl rollout status deploy/time-slicing-verification --timeout=30s", shows=("successfully",)),
        Type(line=_RUNNING, shows=("5",), wait=True),
        Type(line="kubectl logs deploy/time-slicing-verification", shows=("Test PASSED",), wait=True),
        Type(line="kubectl scale deploy/time-slicing-verification --replicas=17", shows=("scaled",)),
        Type(line=_RUNNING, shows=("16",), wait=True),
        Type(line="kubectl get pods -l app=time-slicing-verification", shows=(" Pending ",), wait=True),
        Type(line="kubectl get events", shows=("FailedScheduling ... Insufficient nvidia.com/gpu",), wait=True),
        Type(line="kubectl delete deploy/time-slicing-verification", shows=("deleted",)),
        Type(line="kubectl get pods -l app=time-slicing-verification", shows=("No resources found",), wait=True),
    ),
)

PER_NODE = Step(
    title="A configuration for each node, chosen by its label",
    proves="Each labelled node has its own shares; a resource that a node lacks is a warning; labels act at once.",
    lines=(
        Type(line="kubectl create -n gpu-operator -f time-slicing-config-fine.yaml", shows=("created",)),
        Type(line=_NO_CONFIG, shows=("patched",)),
        Type(line=_name_config("time-slicing-config-fine"), shows=("patched",)),
        capacity("gpu01", "nvidia.com/gpu", "4"),
        Type(line="kubectl label node gpu01 nvidia.com/device-plugin.config=tesla-t4", shows=("node/gpu01 labeled",)),
        Type(line="kubectl label node gpu02 nvidia.com/device-plugin.config=a100-40gb", shows=("node/gpu02 labeled",)),
        _node_holds("gpu01", "nvidia.com/gpu.product=Tesla-T4-SHARED", capacity="nvidia.com/gpu: 16"),
        _node_holds(
            "gpu02",
            "nvidia.com/gpu.replicas=8",
            "nvidia.com/mig-1g.5gb.replicas=2",
            "nvidia.com/mig-3g.20gb.replicas=3",
            "nvidia.com/mig.strategy=mixed",
            capacity=(
                "nvidia.com/gpu: 8 ... nvidia.com/mig-1g.5gb: 2 ... nvidia.com/mig-2g.10gb: 2 ... nvidia.com/mig-3g.20gb: 3"
            ),
        ),
        Type(line="kubectl describe gpunode gpu02", shows=("mig-7g.40gb",), wait=True),
        Type(
            line="kubectl label node gpu02 nvidia.com/device-plugin.config=tesla-t4 --overwrite",
            shows=("node/gpu02 labeled",),
        ),
        capacity("gpu02", "nvidia.com/gpu", "8"),
        Type(line="kubectl label node gpu02 nvidia.com/device-plugin.config-", shows=("node/gpu02 unlabeled",)),
        capacity("gpu02", "nvidia.com/gpu", "2"),
        Type(line="kubectl label node gpu01 nvidia.com/device-plugin.config-", shows=("node/gpu01 unlabeled",)),
        capacity("gpu01", "nvidia.com/gpu", "4"),
    ),
)

RENAMED = Step(
    title="Shares under a name of their own, and no more than one for each pod",
    proves="A renamed share is no whole GPU; where one share each is the rule, a pod that asks for two fails with the reason.",
    lines=(
        Type(line="kubectl create -n gpu-operator -f time-slicing-config-renamed.yaml", shows=("created",)),
        Type(line=_name_config("time-slicing-config-renamed", "renamed"), shows=("patched",)),
        _node_holds(
            "gpu01",
            "nvidia.com/gpu.product=Tesla-T4 ",
            "nvidia.com/gpu.replicas=4",
            capacity="nvidia.com/gpu: 0 ... nvidia.com/gpu.shared: 16",
        ),
        Type(line=_name_config("time-slicing-config-renamed", "one-each"), shows=("patched",)),
        capacity("gpu01", "nvidia.com/gpu", "16"),
        Type(line="kubectl apply -f two-shares.yaml", shows=("pod/two-shares created",)),
        Type(
            line="kubectl describe pod two-shares",
            shows=("UnexpectedAdmissionError", "maximum request size for shared resources is 1; found 2"),
            wait=True,
        ),
        Type(line="kubectl delete pod two-shares", shows=("deleted",)),
    ),
)

_PODS = (
    "kubectl get pods -n gpu-operator --no-headers"
    " -o custom-columns=U:.metadata.uid,R:.status.containerStatuses[0].restartCount | sort"
)
_EDIT = (
    """EDITOR="sed -i 's/replicas: 4/replicas: 8/'" """
    "kubectl edit -n gpu-operator configmap/time-slicing-config-all"
)

EDITED = Step(
    title="An edited ConfigMap takes effect by itself",
    proves="4 shares became 8 while no pod was restarted or created anew.",
    lines=(
        Type(line=_name_config("time-slicing-config-all", "any"), shows=("patched",)),
        capacity("gpu01", "nvidia.com/gpu", "16"),
        Type(line=f"{_PODS} >before"),
        Type(line=_EDIT, shows=("configmap/time-slicing-config-all edited",)),
        capacity("gpu01", "nvidia.com/gpu", "32"),
        Type(line=f"{_PODS} | diff before - && echo no pod was touched", shows=("no pod was touched",)),
    ),
)

OFF = Step(
    title="Sharing off",
    proves="The node shows its four GPUs again, and its labels say that they are not shared.",
    lines=(
        Type(line=_NO_CONFIG, shows=("patched",)),
        Type(
            line="kubectl rollout restart -n gpu-operator daemonset/nvidia-device-plugin-daemonset",
            shows=("daemonset.apps/nvidia-device-plugin-daemonset restarted",),
        ),
        Type(
            line="kubectl rollout status -n gpu-operator daemonset/nvidia-device-plugin-daemonset --timeout=60s",
            shows=("successfully rolled out",),
        ),
        _node_holds(
            "gpu01",
            "nvidia.com/gpu.product=Tesla-T4 ",
            "nvidia.com/gpu.replicas=1",
            "nvidia.com/gpu.sharing-strategy=none",
            capacity="nvidia.com/gpu: 4",
        ),
    ),
)


_ELSEWHERE = (
    "sed 's/name: time-slicing-config-renamed/name: time-slicing-config-elsewhere/' time-slicing-config-renamed.yaml"
    " | kubectl create -n default -f -"
)


def _refused(default: str, says: str) -> tuple[Type, ...]:
    """A default that cannot be used: the policy says why, and the node keeps what it has."""
    condition = (
        f'Message: ... devicePlugin.config.default of the policy names "{default}" ... {says} ... Type: ConfigValid'
    )
    return (
        Type(line=_name_config("broken-configs", default), shows=("patched",)),
        Type(line="kubectl describe clusterpolicy cluster-policy", shows=(condition,), wait=True),
        capacity("gpu01", "nvidia.com/gpu", "16"),
    )


BAD_INPUT = Step(
    title="What people get wrong, and its correction",
    proves="Nothing that runs was disturbed, each mistake was named with its place and remedy, and the correction took effect.",
    lines=(
        Type(
            line="kubectl replace -n gpu-operator -f time-slicing-config-all.yaml",
            shows=("configmap/time-slicing-config-all replaced",),
        ),
        Type(line=_name_config("time-slicing-config-all", "any"), shows=("patched",)),
        capacity("gpu01", "nvidia.com/gpu", "16"),
        Type(line="kubectl create -n gpu-operator -f broken-configs.yaml", shows=("created",)),
        *_refused("unreadable", "line 2"),
        *_refused("wrong-level", '"renameByDefault" belongs under sharing.timeSlicing'),
        *_refused("typo", 'sharing.timeSlicing.resources[0].replica (line 6): unknown key; did you mean "replicas"?'),
        *_refused("both", "timeSlicing and mps exclude each other"),
        *_refused("empty", "it is empty; to share nothing, write `version: v1`"),
        *_refused("no-such-key", "(it has both, empty, typo, unreadable, wrong-level)"),
        Type(line="kubectl describe gpunode gpu01", shows=("no-such-key ... ConfigAssigned",), wait=True),
        Type(line=_name_config("no-such-map", "any"), shows=("patched",)),
        Type(line="kubectl describe clusterpolicy cluster-policy", shows=("no-such-map",), wait=True),
        Type(line=_ELSEWHERE, shows=("created",)),
        Type(line=_name_config("time-slicing-config-elsewhere", "renamed"), shows=("patched",)),
        Type(
            line="kubectl describe clusterpolicy cluster-policy",
            shows=("time-slicing-config-elsewhere", "namespace default"),
            wait=True,
        ),
        Type(line=_name_config("time-slicing-config-all", "any"), shows=("patched",)),
        Type(line="kubectl label node gpu01 nvidia.com/device-plugin.config=tesla-t5", shows=("labeled",)),
        Type(line="kubectl describe gpunode gpu01", shows=("tesla-t5",), wait=True),
        capacity("gpu01", "nvidia.com/gpu", "16"),
        Type(line="kubectl label node gpu01 nvidia.com/device-plugin.config-", shows=("unlabeled",)),
        Type(line="kubectl apply -f second-policy.yaml", shows=("second-policy created",)),
        Type(line="kubectl get clusterpolicies", shows=("cluster-policy ready", "second-policy ignored"), wait=True),
        Type(line="kubectl delete clusterpolicy second-policy", shows=("deleted",)),
        Type(line="kubectl patch clusterpolicy cluster-policy --type merge -p '{\"spec\": null}'", shows=("patched",)),
        Type(line="kubectl describe clusterpolicy cluster-policy", shows=("spec",), wait=True),
        Type(line="kubectl get -n gpu-operator daemonset/nvidia-device-plugin-daemonset -o name", shows=("daemonset",)),
        capacity("gpu01", "nvidia.com/gpu", "16"),
        Type(line="kubectl apply -f cluster-policy.yaml", shows=("cluster-policy configured",)),
        Type(line=_name_config("time-slicing-config-all", "any"), shows=("patched",)),
        Type(line="kubectl get clusterpolicies", shows=("cluster-policy ready",), wait=True),
        Type(line=_NO_CONFIG, shows=("patched",)),
        capacity("gpu01", "nvidia.com/gpu", "4"),
    ),
)

STEPS = (ALL_NODES, FIVE_PODS, PER_NODE, RENAMED, EDITED, OFF, BAD_INPUT)
