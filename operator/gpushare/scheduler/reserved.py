"""What pods must not bring along themselves: variables by which limits reach containers, annotations by which decisions do.

Asked by `mutating`. The kubelet lets a variable of the pod win over one of the device plugin, so a limit could be lifted.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from typing import Final

from gpushare import names
from gpushare.domain.manifests import Manifest

CORE_POLICY: Final = "GPU_CORE_UTILIZATION_POLICY"
"""When HAMi's library limits compute: always with `force`, never with `disable`."""
_VARIABLES: Final = re.compile(
    r"NVIDIA_VISIBLE_DEVICES|CUDA_DEVICE_MEMORY_LIMIT(_\d+)?|CUDA_DEVICE_SM_LIMIT(_\d+)?|CUDA_DEVICE_MEMORY_SHARED_CACHE"
    r"|GPU_CORE_UTILIZATION_POLICY|CUDA_OVERSUBSCRIBE|CUDA_DISABLE_CONTROL|CUDA_MPS_\w+|ALIYUN_COM_GPU_MEM_\w+|CGPU_DISABLE"
)
_ANNOTATIONS: Final = (
    names.ANNOTATION_DECISION,
    names.ANNOTATION_HAMI_NODE,
    names.ANNOTATION_HAMI_TIME,
    names.ANNOTATION_HAMI_DEVICES,
    names.ANNOTATION_ALIYUN_INDEX,
    names.ANNOTATION_ALIYUN_POD,
    names.ANNOTATION_ALIYUN_DEV,
    names.ANNOTATION_ALIYUN_ASSIGNED,
    names.ANNOTATION_ALIYUN_TIME,
    names.ANNOTATION_ALIYUN_ALLOCATION,
)


def find_variables(spec: Manifest, allowed: Collection[str], core_policy: str) -> tuple[str, str] | None:
    """The first reserved variable of a pod, and its container; None where there is none.

    Args:
        spec: of the pod.
        allowed: names that pods may set all the same.
        core_policy: what the administrator says of GPU_CORE_UTILIZATION_POLICY.
    """
    # With these values a container gets no more than without them.
    harmless = {"NVIDIA_VISIBLE_DEVICES": ("none", "void"), CORE_POLICY: ("force", core_policy)}
    for container in (*(spec.get("initContainers") or ()), *(spec.get("containers") or ())):
        for variable in container.get("env") or ():
            name = variable.get("name", "")
            if (
                _VARIABLES.fullmatch(name)
                and name not in allowed
                and variable.get("value") not in harmless.get(name, ())
            ):
                return name, container["name"]
    return None


def describe_variable(name: str, container: str) -> str:
    """What to do about it."""
    return (
        f'container "{container}" sets {name}, by which its share of the GPU is set; leave it out and write what it needs '
        "as limits"
    )


def find_annotations(pod: Manifest, before: Manifest | None) -> tuple[str, ...]:
    """Annotations of the scheduler that whoever writes the pod has added, changed or taken away."""
    now, then = _annotations_of(pod), _annotations_of(before or {})
    return tuple(name for name in _ANNOTATIONS if now.get(name) != then.get(name))


def describe_annotations(forged: Collection[str]) -> str:
    """What to do about them."""
    return (
        f"metadata.annotations: {', '.join(forged)} is the scheduler's to write; leave it out, also where it came along "
        "in a copy of another pod"
    )


def _annotations_of(pod: Manifest) -> Mapping[str, str]:
    return (pod.get("metadata") or {}).get("annotations") or {}
