"""From a description, as a scenario holds it, to GPUs. Used by `simulated`.

driver: {version: 550.90.07, cuda: "12.4", fabric: {cluster: 0123..., clique: 7}}
gpus:
- {model: Tesla-T4, count: 2, numa: 0}
- {model: A100-SXM4-40GB, mig: [1g.5gb, 2g.10gb], switch: 0, nvlink: {switch: 12}, processes: [{pid: 7, memory: 512}]}

Where two GPUs meet is said by equal numbers, the closest thing that they share: `board`, `switch` (one PCI switch), `switches`
(several of them), `bridge` (a host bridge), `numa`. `nvlink` holds numbers of links by index of the other GPU, or `switch`.
"""

from __future__ import annotations

import difflib
import re
import uuid
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

from gpushare.domain.devices import GPU
from gpushare.errors import ConfigurationError, Problem
from gpushare.nvml import dividing
from gpushare.nvml.models import MODELS, Model, find_model
from gpushare.nvml.port import Driver, Process

DEFAULT_DRIVER: Final = Driver(version="550.90.07", cuda_version=(12, 4))
SWITCH: Final = "switch"
_COMPUTE_CLASS: Final = 0x030200
_NAMESPACE: Final = uuid.UUID("6f0d4c2e-5b1a-5d0e-9c57-2f6f7c1b8a31")
_BUS_ID: Final = re.compile(r"[0-9a-f]{4}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]")
_DRIVER_KEYS: Final = ("version", "cuda", "fabric")
_PLACES: Final = ("board", "switch", "switches", "bridge")
_GPU_KEYS: Final = (
    "model", "count", "name", "uuid", "memory", "numa", "bus", "minor", "class", *_PLACES, "mig", "nvlink", "processes"
)  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Described:
    """One simulated GPU."""

    gpu: GPU
    model: Model
    places: Mapping[str, int] = field(default_factory=dict)
    """What it hangs on, by number: `board`, `switch`, `switches`, `bridge`."""
    nvlink: Mapping[int | str, int] = field(default_factory=dict)
    """Number of links by index of the other GPU, or `switch`."""
    processes: tuple[Process, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Description:
    """One simulated node, as far as the driver knows it."""

    driver: Driver = DEFAULT_DRIVER
    gpus: tuple[Described, ...] = ()


def describe(mapping: Mapping[str, Any], seed: str) -> Description:
    """Reads a description; UUIDs that it does not give follow from the seed and the index.

    Raises:
        ConfigurationError: with every problem and its path, `gpus[0].model`.
    """
    reader = _Reader(seed)
    description = reader.read(mapping)
    if reader.problems:
        raise ConfigurationError(reader.problems)
    return description


def split(described: Described, profiles: Sequence[str], seed: str) -> GPU:
    """The GPU with MIG on and these instances. Raises ConfigurationError as `describe`."""
    reader = _Reader(seed)
    gpu = reader.with_mig(described.gpu, described.model, profiles, f"gpus[{described.gpu.index}].mig")
    if reader.problems:
        raise ConfigurationError(reader.problems)
    return gpu


class _Reader:
    """Reads one description and remembers what is wrong with it."""

    def __init__(self, seed: str) -> None:
        self.seed = seed
        self.problems: list[Problem] = []

    def read(self, mapping: Mapping[str, Any]) -> Description:
        body = self.block(mapping, "", ("driver", "gpus", "seed"))
        driver_body = self.block(body.get("driver"), "driver", _DRIVER_KEYS)
        clique = self.clique(driver_body.get("fabric"))
        gpus: list[Described] = []
        for position, entry in enumerate(self.sequence(body.get("gpus"), "gpus")):
            gpus += self.entry(entry, f"gpus[{position}]", len(gpus), clique)
        for described in gpus:
            self.check_links(described, len(gpus))
        return Description(driver=self.driver(driver_body), gpus=tuple(gpus))

    def driver(self, body: Mapping[str, Any]) -> Driver:
        version = str(body.get("version", DEFAULT_DRIVER.version))
        cuda = re.fullmatch(r"(\d+)\.(\d+)", str(body.get("cuda", "12.4")))
        if cuda is None:
            self.refuse("driver.cuda", 'is no version; write "12.4"')
            return Driver(version=version)
        return Driver(version=version, cuda_version=(int(cuda[1]), int(cuda[2])))

    def clique(self, value: Any) -> str | None:
        if value is None:
            return None
        body = self.block(value, "driver.fabric", ("cluster", "clique"))
        try:
            return f"{uuid.UUID(str(body.get('cluster')))}.{int(body.get('clique', 0))}"
        except (ValueError, TypeError):
            self.refuse("driver.fabric", "needs a UUID as cluster and a number as clique")
            return None

    def entry(self, value: Any, path: str, first: int, clique: str | None) -> Iterator[Described]:
        if not isinstance(value, Mapping):
            self.refuse(path, "must hold keys; write {model: Tesla-T4}")
            return
        body = self.block(value, path, _GPU_KEYS)
        model = find_model(str(body.get("model", "")))
        if model is None:
            self.refuse(f"{path}.model", self.unknown_model(body.get("model")))
            return
        count = self.number(body, "count", path, 1) or 0
        if count < 1:
            self.refuse(f"{path}.count", "must be at least 1; a node without GPUs has no entry here")
            return
        if count > 1:
            for key in ("uuid", "bus", "minor"):
                if key in body:
                    self.refuse(f"{path}.{key}", "cannot be the same for several GPUs; write an entry for each")
        for index in range(first, first + count):
            yield self.described(body, path, model, index, clique)

    def described(self, body: Mapping[str, Any], path: str, model: Model, index: int, clique: str | None) -> Described:
        minor = self.number(body, "minor", path, index) or 0
        bus_id = str(body.get("bus", f"0000:{0x10 + 3 * index % 0xE0:02x}:00.0")).lower()
        if not _BUS_ID.fullmatch(bus_id):
            self.refuse(f"{path}.bus", "is no PCI address; write 0000:3b:00.0")
        gpu = GPU(
            index=index,
            uuid=str(body.get("uuid") or f"GPU-{self.uuid_of(index)}"),
            product=str(body.get("name") or model.product),
            minor=minor,
            memory_mib=self.number(body, "memory", path, model.memory_mib) or 0,
            compute_capability=model.compute_capability,
            bus_id=bus_id,
            numa_node=self.number(body, "numa", path, None),
            pci_class=self.number(body, "class", path, _COMPUTE_CLASS),
            # As the driver has it: a fabric is a matter of Hopper and later.
            fabric_clique=clique if model.compute_capability.major >= 9 else None,
            mig_capable=bool(model.profiles),
            paths=(f"/dev/nvidia{minor}",),
        )
        if body.get("mig") is not None:
            gpu = self.with_mig(gpu, model, self.sequence(body["mig"], f"{path}.mig"), f"{path}.mig")
        return Described(
            gpu=gpu,
            model=model,
            places={key: number for key in _PLACES if (number := self.number(body, key, path, None)) is not None},
            nvlink=self.nvlink(body.get("nvlink"), f"{path}.nvlink"),
            processes=tuple(self.processes(body.get("processes"), f"{path}.processes")),
        )

    def with_mig(self, gpu: GPU, model: Model, entries: Sequence[Any], path: str) -> GPU:
        """The GPU in MIG mode; an entry is a profile, or a profile with the UUID that its instance shall have."""
        profiles: list[str] = []
        uuids: list[str] = []
        for position, entry in enumerate(entries):
            given = {"profile": entry} if isinstance(entry, str) else entry
            body = self.block(given, f"{path}[{position}]", ("profile", "uuid"))
            profiles.append(str(body.get("profile", "")))
            uuids.append(str(body.get("uuid") or f"MIG-{self.uuid_of(gpu.index, position, profiles[-1])}"))
        problems = tuple(dividing.check_profiles(gpu, model, profiles, path))
        self.problems += problems
        instances = () if problems else dividing.build_instances(gpu, model, profiles, uuids)
        return replace(gpu, mig_enabled=True, mig=instances)

    def nvlink(self, value: Any, path: str) -> Mapping[int | str, int]:
        if value is None:
            return {}
        body = self.block(value, path, None)
        links: dict[int | str, int] = {}
        for peer, count in body.items():
            if not (peer == SWITCH or (isinstance(peer, int | str) and str(peer).isdecimal())) or not _is_count(count):
                self.refuse(f"{path}.{peer}", f'write the index of a GPU or "{SWITCH}", and a number of links')
                continue
            links[SWITCH if peer == SWITCH else int(peer)] = count
        return links

    def check_links(self, described: Described, count: int) -> None:
        for peer in described.nvlink:
            if isinstance(peer, int) and (peer >= count or peer == described.gpu.index):
                path = f"gpus[{described.gpu.index}].nvlink.{peer}"
                self.refuse(path, f"is no other GPU of this node; it has 0 to {count - 1}")

    def processes(self, value: Any, path: str) -> Iterator[Process]:
        for position, entry in enumerate(self.sequence(value, path)):
            place = f"{path}[{position}]"
            body = self.block(entry, place, ("pid", "memory"))
            pid = self.number(body, "pid", place, 0) or 0
            yield Process(pid=pid, memory_mib=self.number(body, "memory", place, None))

    def block(self, value: Any, path: str, keys: Sequence[str] | None) -> Mapping[str, Any]:
        if value is None:
            return {}
        if not isinstance(value, Mapping):
            self.refuse(path, "must hold keys")
            return {}
        for key in value if keys is not None else ():
            if key not in (keys or ()):
                close = difflib.get_close_matches(str(key), keys or (), 1)
                hint = f'did you mean "{close[0]}"?' if close else f"known here: {', '.join(keys or ())}"
                self.refuse(f"{path}.{key}".lstrip("."), f"unknown key; {hint}")
        return value

    def sequence(self, value: Any, path: str) -> Sequence[Any]:
        if value is None:
            return ()
        if not isinstance(value, Sequence) or isinstance(value, str):
            self.refuse(path, "must be a list")
            return ()
        return value

    def number(self, body: Mapping[str, Any], key: str, path: str, default: int | None) -> int | None:
        value = body.get(key, default)
        if value is None or (isinstance(value, int) and _is_count(value)):
            return value
        self.refuse(f"{path}.{key}", f"must be a whole number, not {value!r}")
        return default

    def uuid_of(self, *place: int | str) -> str:
        return str(uuid.uuid5(_NAMESPACE, "/".join((self.seed, *map(str, place)))))

    def unknown_model(self, name: Any) -> str:
        known = ", ".join(model.product.removeprefix("NVIDIA ").replace(" ", "-") for model in MODELS)
        return f"unknown model {name!r}; known: {known}" if name is not None else f"is missing; known: {known}"

    def refuse(self, path: str, message: str) -> None:
        self.problems.append(Problem(path=path, message=message))


def _is_count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0
