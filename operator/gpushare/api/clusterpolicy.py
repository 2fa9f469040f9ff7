"""ClusterPolicy as far as it is managed here: a tolerant model, the meaning of what is left out, and image references.

Tolerant, since every existing policy must apply unchanged: unknown fields are ignored, a null is the same as nothing, and
only `spec.devicePlugin` must be there. Called by `plan`, which holds everything as it is where this gives no policy.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal

import pydantic
from pydantic.alias_generators import to_camel

from gpushare import names
from gpushare.domain.manifests import Manifest
from gpushare.errors import ConfigurationError, Problem

ON_WHEN_ABSENT: Final = frozenset(
    {"driver", "toolkit", "device_plugin", "dcgm", "dcgm_exporter", "gfd", "mig_manager", "cdi"}
)
"""What `enabled` means where it is not written; as in NVIDIA's operator, decided by the component and not by the schema."""

UNMANAGED: Final = (
    "driver", "toolkit", "dcgm", "dcgm_exporter", "node_status_exporter", "mig_manager", "gds", "gdrcopy",
)  # fmt: skip
"""Components that a policy may enable and that this operator leaves alone."""
UNMANAGED_SANDBOX: Final = (
    "vgpu_manager", "vgpu_device_manager", "vfio_manager", "sandbox_device_plugin", "kata_sandbox_device_plugin",
    "cc_manager",
)  # fmt: skip
"""The same, of virtual machines: without effect until `sandboxWorkloads.enabled`."""


class _Part(pydantic.BaseModel):
    model_config = pydantic.ConfigDict(extra="ignore", frozen=True, alias_generator=to_camel, populate_by_name=True)

    @pydantic.model_validator(mode="before")
    @classmethod
    def _null_is_nothing(cls, data: Any) -> Any:
        # Policies in the field hold nulls where the schema has objects; an old CRD lets them through.
        return {key: value for key, value in data.items() if value is not None} if isinstance(data, Mapping) else data


class Switch(_Part):
    """A component of which only this matters."""

    enabled: bool | None = None


class EnvVar(_Part):
    """One variable; the schema knows literal values only."""

    name: str
    value: str = ""


class Resources(_Part):
    """Requests and limits; quantities as they were written."""

    limits: dict[str, int | str] = {}
    requests: dict[str, int | str] = {}


class Operand(Switch):
    """What nearly every component has in common."""

    repository: str = ""
    image: str = ""
    version: str = ""
    """A tag, or a digest when it begins with `sha256:`."""
    image_pull_policy: str = ""
    image_pull_secrets: tuple[str, ...] = ()
    args: tuple[str, ...] = ()
    env: tuple[EnvVar, ...] = ()
    resources: Resources | None = None
    host_network: bool = False


class PluginConfig(_Part):
    """Which ConfigMap holds the sharing configurations, and which key nodes without a label get."""

    name: str = ""
    default: str = ""


class Mps(_Part):
    """Where the MPS daemons keep their pipes on the host."""

    root: str = "/run/nvidia/mps"


class DevicePlugin(Operand):
    """The node agent."""

    config: PluginConfig = PluginConfig()
    mps: Mps = Mps()


class Operator(_Part):
    """Settings of the operator itself."""

    runtime_class: str = "nvidia"


class RollingUpdate(_Part):
    """How many nodes may be without an agent during a rollout."""

    max_unavailable: str = ""
    """A number or a percentage, as text."""


class DaemonSets(_Part):
    """What all DaemonSets have in common."""

    labels: dict[str, str] = {}
    annotations: dict[str, str] = {}
    tolerations: tuple[dict[str, Any], ...] = ()
    priority_class_name: str = ""
    pod_security_context: dict[str, Any] = {}
    update_strategy: Literal["RollingUpdate", "OnDelete", ""] = ""
    rolling_update: RollingUpdate = RollingUpdate()


class Mig(_Part):
    """The MIG strategy of all nodes; empty: each configuration says its own."""

    strategy: Literal["none", "single", "mixed", ""] = ""


class Cdi(Switch):
    """Whether containers get their GPUs by CDI."""

    nri_plugin_enabled: bool = False


class Toolkit(Switch):
    """NVIDIA's container toolkit, whose program containers with CDI devices need to start."""

    install_dir: str = "/usr/local/nvidia"


class HostPaths(_Part):
    """Where things are on the host."""

    root_fs: str = pydantic.Field(default="/", validation_alias="rootFS")
    driver_install_dir: str = "/run/nvidia/driver"
    kubelet_root_dir: str = "/var/lib/kubelet"


class SandboxWorkloads(Switch):
    """Virtual machines with GPUs."""

    default_workload: Literal["container", "vm-passthrough", "vm-vgpu", ""] = "container"


class ClusterPolicy(_Part):
    """The spec of a ClusterPolicy. Every component that can be switched on is here, the managed ones in full."""

    operator: Operator = Operator()
    daemonsets: DaemonSets = DaemonSets()
    device_plugin: DevicePlugin
    gfd: Switch = Switch()
    mig: Mig = Mig()
    cdi: Cdi = Cdi()
    host_paths: HostPaths = HostPaths()
    sandbox_workloads: SandboxWorkloads = SandboxWorkloads()
    toolkit: Toolkit = Toolkit()
    driver: Switch = Switch()
    dcgm: Switch = Switch()
    dcgm_exporter: Switch = Switch()
    node_status_exporter: Switch = Switch()
    mig_manager: Switch = Switch()
    gds: Switch = Switch()
    gdrcopy: Switch = Switch()
    vgpu_manager: Switch = Switch()
    vgpu_device_manager: Switch = Switch()
    vfio_manager: Switch = Switch()
    sandbox_device_plugin: Switch = Switch()
    kata_sandbox_device_plugin: Switch = Switch()
    cc_manager: Switch = Switch()

    def is_enabled(self, component: str) -> bool:
        """Whether a component (the name of its field here) is on, written or not."""
        switch: Switch = getattr(self, component)
        return component in ON_WHEN_ABSENT if switch.enabled is None else switch.enabled

    def unmanaged(self) -> tuple[str, ...]:
        """Enabled components that this operator leaves alone, as the policy spells them."""
        candidates = UNMANAGED + (UNMANAGED_SANDBOX if self.is_enabled("sandbox_workloads") else ())
        return tuple(to_camel(component) for component in candidates if self.is_enabled(component))


@dataclass(frozen=True, slots=True, kw_only=True)
class ParsedPolicy:
    """What became of a manifest."""

    policy: ClusterPolicy | None
    """None: it cannot be acted upon, and nothing that runs may be touched on its account."""
    problems: tuple[Problem, ...] = ()


def parse_policy(manifest: Manifest) -> ParsedPolicy:
    """Reads a ClusterPolicy. Never raises: what is wrong is in the result."""
    spec = manifest.get("spec")
    if spec is None:
        return ParsedPolicy(policy=None, problems=(_absent("spec"),))
    if isinstance(spec, Mapping) and spec.get("devicePlugin") is None:
        return ParsedPolicy(policy=None, problems=(_absent("spec.devicePlugin"),))
    try:
        return ParsedPolicy(policy=ClusterPolicy.model_validate(spec))
    except pydantic.ValidationError as error:
        return ParsedPolicy(policy=None, problems=tuple(map(_problem_of, error.errors())))


def _absent(path: str) -> Problem:
    message = (
        "is missing, so everything stays as it is; apply the whole policy again (`{}` is enough for each part of it)"
    )
    return Problem(path=path, message=message)


_EXPECTED: Final = {
    "bool": "true or false",
    "string": "a text",
    "tuple": "a list",
    "list": "a list",
    "dict": "an object",
    "model": "an object",
}


def _problem_of(error: Any) -> Problem:
    path = "spec" + "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in error["loc"])
    kind = error["type"]
    if kind == "missing":
        return Problem(path=path, message="is missing")
    if kind == "literal_error":
        expected = "one of " + str(error["ctx"]["expected"]).replace(" or ''", "").replace("'", "")
    else:
        expected = _EXPECTED.get(kind.partition("_")[0], "")
    found = repr(error["input"])[:60]
    message = f"expected {expected}, found {found}" if expected else f"{error['msg'].lower()}, found {found}"
    return Problem(path=path, message=message)


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
