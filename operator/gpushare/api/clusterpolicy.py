"""ClusterPolicy as far as it is managed here: a tolerant model, and the meaning of what is left out.

Tolerant, since every existing policy must apply unchanged: unknown fields are ignored, a null is the same as nothing, and
only `spec.devicePlugin` must be there. Called by `plan`, which holds everything as it is where this gives no policy.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Final, Literal

import pydantic
from pydantic.alias_generators import to_camel

from gpushare.domain.manifests import Manifest
from gpushare.errors import Problem

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


_Flag = pydantic.StrictBool
"""As the kind has it: "yes" is no truth."""
_Quantity = Annotated[str, pydantic.BeforeValidator(lambda value: str(value) if type(value) is int else value)]
"""An amount as a text, which is how every API server writes it."""


class _Part(pydantic.BaseModel):
    model_config = pydantic.ConfigDict(extra="ignore", frozen=True, alias_generator=to_camel, populate_by_name=True)

    @pydantic.model_validator(mode="before")
    @classmethod
    def _empty_is_nothing(cls, data: Any) -> Any:
        # Policies in the field hold nulls where the schema has objects; an old CRD lets them through. And an empty text is
        # as good as none, as it is for every program in Go: who clears a field wants its default back.
        return (
            {key: value for key, value in data.items() if value not in (None, "")}
            if isinstance(data, Mapping)
            else data
        )


class Switch(_Part):
    """A component of which only this matters."""

    enabled: _Flag | None = None


class EnvVar(_Part):
    """One variable; the schema knows literal values only."""

    name: str
    value: str = ""


class Resources(_Part):
    """Requests and limits."""

    limits: dict[str, _Quantity] = {}
    requests: dict[str, _Quantity] = {}


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
    host_network: _Flag = False


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


class ServiceMonitor(Switch):
    """How Prometheus reads the metrics of what the operator runs; without effect where its kind does not exist."""

    interval: str = ""
    scrape_timeout: str = ""
    honor_labels: _Flag | None = None
    additional_labels: dict[str, str] = {}
    relabelings: tuple[dict[str, Any] | None, ...] = ()


class Metrics(_Part):
    """Metrics of what the operator runs."""

    service_monitor: ServiceMonitor = ServiceMonitor()


class Operator(_Part):
    """Settings of the operator itself."""

    runtime_class: str = "nvidia"
    metrics: Metrics = Metrics()


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

    nri_plugin_enabled: _Flag = False


class Toolkit(Switch):
    """NVIDIA's container toolkit, whose program containers with CDI devices need to start."""

    install_dir: str = "/usr/local/nvidia"


class HostPaths(_Part):
    """Where things are on the host."""

    root_fs: str = pydantic.Field(default="/", validation_alias="rootFS")
    driver_install_dir: str = "/run/nvidia/driver"
    kubelet_root_dir: str = "/var/lib/kubelet"


class PodSecurity(Switch):
    """Whether the operator's namespace is labelled to let privileged pods in."""


class SandboxWorkloads(Switch):
    """Virtual machines with GPUs."""

    default_workload: Literal["container", "vm-passthrough", "vm-vgpu", ""] = "container"
    mode: Literal["kubevirt", "kata", ""] = "kubevirt"


class MigManagerConfig(_Part):
    """Layouts of MIG."""

    default: str = ""
    """With which layout to begin; the definition of the kind fills in `all-disabled` where nothing is written."""


class MigManager(Switch):
    """Changes MIG layouts; another operator's, but for the label by which it is told what to begin with."""

    config: MigManagerConfig | None = None


class ClusterPolicy(_Part):
    """The spec of a ClusterPolicy. Every component that can be switched on is here, the managed ones in full."""

    operator: Operator = Operator()
    daemonsets: DaemonSets = DaemonSets()
    device_plugin: DevicePlugin
    gfd: Switch = Switch()
    mig: Mig = Mig()
    cdi: Cdi = Cdi()
    psa: PodSecurity = PodSecurity()
    host_paths: HostPaths = HostPaths()
    sandbox_workloads: SandboxWorkloads = SandboxWorkloads()
    toolkit: Toolkit = Toolkit()
    driver: Switch = Switch()
    dcgm: Switch = Switch()
    dcgm_exporter: Switch = Switch()
    node_status_exporter: Switch = Switch()
    mig_manager: MigManager = MigManager()
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
        policy = ClusterPolicy.model_validate(spec)
    except pydantic.ValidationError as error:
        return ParsedPolicy(policy=None, problems=tuple(map(_problem_of, error.errors())))
    problems = _contradictions(policy)
    return ParsedPolicy(policy=None if problems else policy, problems=problems)


def _contradictions(policy: ClusterPolicy) -> tuple[Problem, ...]:
    """What NVIDIA's operator refuses too, but only when it starts."""
    if not policy.cdi.nri_plugin_enabled:
        return ()
    return tuple(
        Problem(
            path="spec.cdi.nriPluginEnabled",
            message=f"needs {needed}, which the policy switches off; set one of the two to the other",
        )
        for component, needed in (("cdi", "cdi.enabled"), ("toolkit", "toolkit.enabled"))
        if not policy.is_enabled(component)
    )


def _absent(path: str) -> Problem:
    message = "is missing, so nothing is changed; apply the whole policy again (`{}` is enough for each part of it)"
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
    found = "null" if error["input"] is None else repr(error["input"])[:60]
    message = f"expected {expected}, found {found}" if expected else f"{error['msg'].lower()}, found {found}"
    return Problem(path=path, message=message)
