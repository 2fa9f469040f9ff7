"""What containers print that only seem to run."""

from __future__ import annotations

import pytest

from gpushare.sandbox.node import transcripts
from gpushare.sandbox.node.cdi import Edits
from gpushare.sandbox.node.specs import Endpoint
from gpushare.sharing.responses import ContainerAnswer, DeviceNode, Mount

GIVEN = ContainerAnswer(
    envs={"NVIDIA_VISIBLE_DEVICES": "GPU-1"},
    mounts=(Mount(container_path="/in", host_path="/out", read_only=True),),
    devices=(DeviceNode(container_path="/dev/nvidia0", host_path="/dev/nvidia0"),),
    annotations={"cdi.k8s.io/x": "nvidia.com/gpu=0"},
    cdi_devices=("nvidia.com/gpu=0",),
)


def test_everything_that_was_allocated_is_shown() -> None:
    """People see in the log what the device plugin answered, and what of it their own specification changed."""
    edits = Edits(devices=("/dev/nvidia0", "/dev/nvidiactl"), mounts=("/usr/bin/nvidia-smi",), hooks=5)
    lines = list(transcripts.build_lines("busybox", ["sleep", "9"], {"NVIDIA_VISIBLE_DEVICES": "none"}, GIVEN, edits))
    assert lines == [
        "sandbox: this container only seems to run busybox sleep 9",
        "sandbox: env NVIDIA_VISIBLE_DEVICES=none",
        "sandbox: mount /out at /in (read-only)",
        "sandbox: device /dev/nvidia0 at /dev/nvidia0 (rw)",
        "sandbox: annotation cdi.k8s.io/x=nvidia.com/gpu=0",
        "sandbox: CDI device nvidia.com/gpu=0",
        "sandbox: by CDI device /dev/nvidia0",
        "sandbox: by CDI device /dev/nvidiactl",
        "sandbox: by CDI mount /usr/bin/nvidia-smi",
        "sandbox: by CDI 5 hooks",
    ]


@pytest.mark.parametrize(
    ("image", "words"),
    [
        pytest.param("nvcr.io/nvidia/k8s/cuda-sample:vectoradd-cuda12.5.0", (), id="image"),
        pytest.param("cuda", ("/bin/bash", "-c", "while true; do /cuda-samples/vectorAdd; done"), id="command"),
    ],
)
def test_vector_addition(image: str, words: tuple[str, ...]) -> None:
    """The sample passes its test with a GPU, and says why not without."""
    assert list(transcripts.build_lines(image, words, {}, GIVEN, Edits()))[-2:] == ["Test PASSED", "Done"]
    without = list(transcripts.build_lines(image, words, {}, ContainerAnswer(), Edits()))
    assert without[-1].endswith("(error code no CUDA-capable device is detected)!")


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("https://127.0.0.1:6443", Endpoint(host="127.0.0.1", port=6443)),
        ("https://api.example", Endpoint(host="api.example", port=443)),
        ("https://[::1]:8443/prefix", Endpoint(host="::1", port=8443)),
    ],
)
def test_address_of_the_api_server(url: str, expected: Endpoint) -> None:
    """Pods get it in two variables."""
    assert Endpoint.from_url(url) == expected


def test_no_address() -> None:
    """A kubeconfig without a server cannot be handed to pods."""
    with pytest.raises(ValueError, match="they look like https://"):
        Endpoint.from_url("nowhere")
