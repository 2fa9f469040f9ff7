"""Image references of a ClusterPolicy: which one its fields mean. Called by `plan`."""

from __future__ import annotations

from gpushare import names
from gpushare.api.clusterpolicy import Operand
from gpushare.errors import ConfigurationError, Problem


def resolve_image(operand: Operand, path: str, fallback: str) -> str:
    """The image reference of a component: its three fields, only `image` as a full reference, or the fallback.

    Same order of decision as NVIDIA's operator, and as there some but not all fields are an error that the fallback does
    not heal.

    Raises:
        ConfigurationError: a partial specification, or nothing at all.
    """
    fields = {"repository": operand.repository, "image": operand.image, "version": operand.version}
    given = [name for name, value in fields.items() if value]
    if given == ["image"]:
        return operand.image
    if len(given) == len(fields):
        separator = "@" if operand.version.startswith("sha256:") else ":"
        return f"{operand.repository}/{operand.image}{separator}{operand.version}"
    if given:
        lacking = " and ".join(name for name, value in fields.items() if not value)
        raise ConfigurationError(
            [
                Problem(
                    path=path,
                    message=f"invalid image specification, without {lacking}; write repository, image and version, "
                    "only image as a full reference, or none of them",
                )
            ]
        )
    if not fallback:
        raise ConfigurationError(
            [
                Problem(
                    path=path,
                    message=f"no image: the policy names none, and {names.ENV_DEVICE_PLUGIN_IMAGE} of the operator is empty",
                )
            ]
        )
    return fallback


def is_own_image(reference: str) -> bool:
    """Whether an image is a build of this project, whatever registry, tag or digest it has."""
    repository = reference.partition("@")[0].rpartition("/")[2]
    return repository.partition(":")[0] == names.IMAGE
