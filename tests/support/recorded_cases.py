"""Recorded cases of NVIDIA's device plugin and feature discovery, and what our own parts say about the same node."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from gpushare.agent import options
from gpushare.agent.discovery import read_inventory
from gpushare.api.parsing import ParsedSharing, parse_sharing
from gpushare.api.sharing import SharingConfig
from gpushare.domain.devices import Inventory, MigStrategy
from gpushare.sharing.building import Built, build_pools
from gpushare.sharing.responses import ResponseOptions
from support.described_nodes import CONTROL_DEVICES, FakeMachine, build_machine, build_nvml

DATA = Path(__file__).parents[1] / "conformance" / "data"


@dataclass(frozen=True)
class Case:
    """One recorded case."""

    name: str
    body: dict[str, Any]

    @property
    def text(self) -> str:
        """The configuration file; empty where none was given."""
        return json.dumps(self.body["config"]) if self.body["config"] is not None else ""

    @cached_property
    def machine(self) -> FakeMachine:
        machine = build_machine(self.body["node"])
        variation = self.body.get("variation", [])
        if "no-pci" in variation:
            machine.files = {path: text for path, text in machine.files.items() if not path.startswith("/sys/bus/pci")}
        if "no-machine-type-file" in variation:
            del machine.files["/sys/class/dmi/id/product_name"]
        return machine

    @cached_property
    def inventory(self) -> Inventory:
        return read_inventory(build_nvml(self.body["node"]), self.machine)

    @cached_property
    def parsed(self) -> ParsedSharing:
        return parse_sharing(self.text)

    @cached_property
    def config(self) -> SharingConfig:
        """What is in force: flags before environment before file; the default where the file is refused."""
        config = self.parsed.config or SharingConfig()
        said = options.parse(self.body["flags"], self.body["env"]).flags
        return replace(config, flags=_merged(said, config.flags))

    @property
    def strategy(self) -> MigStrategy:
        return self.config.flags.mig_strategy or MigStrategy.NONE

    @cached_property
    def built(self) -> Built:
        return build_pools(self.inventory, self.config, self.strategy)

    @property
    def response_options(self) -> ResponseOptions:
        flags, plugin = self.config.flags, self.config.flags.plugin
        features = {"gdrcopy": flags.gdrcopy_enabled, "gds": flags.gds_enabled, "mofed": flags.mofed_enabled}
        return ResponseOptions(
            list_strategies=frozenset(plugin.device_list_strategy or ResponseOptions().list_strategies),
            id_strategy=plugin.device_id_strategy or ResponseOptions().id_strategy,
            pass_device_specs=bool(plugin.pass_device_specs),
            control_devices=CONTROL_DEVICES,
            dev_root=flags.nvidia_dev_root or flags.nvidia_driver_root or "/",
            mps_root=flags.mps_root or "",
            cdi_annotation_prefix=plugin.cdi_annotation_prefix or ResponseOptions().cdi_annotation_prefix,
            features=frozenset(name for name, is_on in features.items() if is_on),
        )


def _merged(said: Any, written: Any) -> Any:
    """Field by field what was said, else what was written."""
    values = {}
    for name in said.__dataclass_fields__:
        above, below = getattr(said, name), getattr(written, name)
        values[name] = (
            _merged(above, below) if hasattr(above, "__dataclass_fields__") else below if above is None else above
        )
    return type(said)(**values)


def read_cases(kind: str, leaving_out: Iterable[str] = ()) -> list[Case]:
    """All cases of one kind but those named."""
    paths = sorted((DATA / kind).glob("*.json"))
    assert set(leaving_out) <= {path.stem for path in paths}
    return [Case(path.stem, json.loads(path.read_text())) for path in paths if path.stem not in set(leaving_out)]
