"""What containers print that only seem to run: what they run with, and what a few famous images would have said. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from gpushare.sandbox.node.cdi import Edits
from gpushare.sharing.responses import ContainerAnswer

_VECTOR_ADD = (
    "[Vector addition of 50000 elements]",
    "Copy input data from the host memory to the CUDA device",
    "CUDA kernel launch with 196 blocks of 256 threads",
    "Copy output data from the CUDA device to the host memory",
    "Test PASSED",
    "Done",
)
_VECTOR_ADD_WITHOUT_GPU = (
    "[Vector addition of 50000 elements]",
    "Failed to allocate device vector A (error code no CUDA-capable device is detected)!",
)


def is_vector_add(image: str, words: Sequence[str]) -> bool:
    """Whether this is NVIDIA's vector addition sample, with which people verify that GPUs work."""
    return any("vectoradd" in word.lower() for word in (image, *words))


def build_lines(
    image: str, words: Sequence[str], environ: Mapping[str, str], answer: ContainerAnswer, edits: Edits
) -> Iterator[str]:
    """The output of one run, first of all what the container got from the device plugins."""
    yield f"sandbox: this container only seems to run {image} {' '.join(words)}".rstrip()
    yield from _given_lines(environ, answer)
    yield from _edit_lines(edits)
    if is_vector_add(image, words):
        yield from _VECTOR_ADD if has_devices(answer) else _VECTOR_ADD_WITHOUT_GPU


def has_devices(answer: ContainerAnswer) -> bool:
    """Whether a device plugin gave the container anything."""
    return answer != ContainerAnswer()


def _edit_lines(edits: Edits) -> Iterator[str]:
    """What stands behind CDI names."""
    for path in edits.devices:
        yield f"sandbox: by CDI device {path}"
    for path in edits.mounts:
        yield f"sandbox: by CDI mount {path}"
    if edits.hooks:
        yield f"sandbox: by CDI {edits.hooks} hooks"


def _given_lines(environ: Mapping[str, str], answer: ContainerAnswer) -> Iterator[str]:
    for name, value in answer.envs.items():
        # The specification may set the same variable, and then it wins.
        yield f"sandbox: env {name}={environ.get(name, value)}"
    for mount in answer.mounts:
        yield f"sandbox: mount {mount.host_path} at {mount.container_path}{' (read-only)' if mount.read_only else ''}"
    for device in answer.devices:
        yield f"sandbox: device {device.host_path} at {device.container_path} ({device.permissions})"
    for name, value in answer.annotations.items():
        yield f"sandbox: annotation {name}={value}"
    for name in answer.cdi_devices:
        yield f"sandbox: CDI device {name}"
    if not has_devices(answer):
        yield "sandbox: no device was allocated to it"
