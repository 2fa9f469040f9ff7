"""Image references as a policy gives them."""

from __future__ import annotations

import pytest

from gpushare.api.clusterpolicy import Operand
from gpushare.api.images import is_own_image, resolve_image
from gpushare.errors import ConfigurationError

DIGEST = "sha256:" + "0" * 64


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        pytest.param({}, "fallback:1", id="nothing"),
        pytest.param({"image": "r/i:t"}, "r/i:t", id="a full reference"),
        pytest.param({"repository": "r", "image": "i", "version": "t"}, "r/i:t", id="a tag"),
        pytest.param({"repository": "r", "image": "i", "version": DIGEST}, f"r/i@{DIGEST}", id="a digest"),
    ],
)
def test_image(fields: dict[str, str], expected: str) -> None:
    """All three fields, one, or none."""
    assert expected == resolve_image(Operand(**fields), "spec.x", "fallback:1")


@pytest.mark.parametrize(
    ("fields", "fallback", "text"),
    [
        pytest.param({"repository": "r"}, "fallback:1", "without image and version", id="only a repository"),
        pytest.param({"version": "t"}, "fallback:1", "without repository and image", id="only a version"),
        pytest.param({"repository": "r", "image": "i"}, "fallback:1", "without version", id="no version"),
        pytest.param({}, "", "DEVICE_PLUGIN_IMAGE", id="nothing at all"),
    ],
)
def test_image_refused(fields: dict[str, str], fallback: str, text: str) -> None:
    """Half a reference is an error that names the component; the fallback does not heal it."""
    with pytest.raises(ConfigurationError, match=r"spec\.x: ") as caught:
        resolve_image(Operand(**fields), "spec.x", fallback)

    assert text in str(caught.value)


@pytest.mark.parametrize(
    ("reference", "own"),
    [
        pytest.param("gpu-sharing-operator", True, id="bare"),
        pytest.param("registry.example:5000/a/gpu-sharing-operator:1.0", True, id="registry with a port"),
        pytest.param(f"registry.example/gpu-sharing-operator@{DIGEST}", True, id="digest"),
        pytest.param(f"registry.example/gpu-sharing-operator:1@{DIGEST}", True, id="tag and digest"),
        pytest.param("registry.example/k8s-device-plugin:v0.20.0", False, id="NVIDIA's"),
        pytest.param("registry.example/gpu-sharing-operator/other:1", False, id="a folder of our name"),
        pytest.param("registry.example/gpu-sharing-operator-fork:1", False, id="a longer name"),
    ],
)
def test_own_image(reference: str, own: bool) -> None:
    """Any registry, any tag."""
    assert own is is_own_image(reference)
