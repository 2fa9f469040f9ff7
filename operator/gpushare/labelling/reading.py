"""One reading of a node: what its labels are now, and what stands in the way. Called by `running`, again and again.

The labels are those of what an agent would serve here, so that the two never disagree: a configuration that cannot be had
leaves the last one in force, or the devices unshared.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Final

from gpushare import labels
from gpushare.agent import configuration, discovery
from gpushare.agent.deciding import Assignment
from gpushare.api.parsing import ParsedSharing, parse_sharing
from gpushare.api.sharing import SharingConfig
from gpushare.domain.devices import Inventory, MigStrategy
from gpushare.domain.pools import Strategy
from gpushare.errors import DeviceError, Problem
from gpushare.host.files import HostFiles
from gpushare.labelling import options as options_
from gpushare.labelling.options import LabelOptions, LabelSettings
from gpushare.nvml.port import Nvml
from gpushare.sharing import building
from gpushare.sharing.building import Built
from gpushare.sharing.capability import with_mps_root

_GPU: Final = re.compile(r"gpus\[\d+\]")
"""Path of a problem that concerns a whole GPU: labels do not need the device nodes of its MIG instances."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """What one reading found."""

    source: Assignment
    """The configuration as it was read."""
    settings: LabelSettings
    labels: Mapping[str, str] | None = None
    """None: nothing is known, and what was written before is the best that there is."""
    failures: tuple[str, ...] = ()
    """What GPU feature discovery fails for; whoever wants one answer and no second try fails for it too."""
    notes: tuple[str, ...] = ()
    """What is to be said besides."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Text:
    """The configuration file, and what is to be said about it."""

    source: Assignment = field(default_factory=Assignment)
    parsed: ParsedSharing = field(default_factory=lambda: ParsedSharing(config=SharingConfig()))
    failures: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class _Wanted:
    config: SharingConfig
    strategy: MigStrategy


class Reader:
    """Reads the same node again and again. Blocks; calls must not overlap."""

    def __init__(self, options: LabelOptions, files: HostFiles, nvml: Nvml) -> None:
        self._options = options
        self._files = files
        self._nvml = nvml
        self._inventory: Inventory | None = None
        self._in_force: _Wanted | None = None

    def read(self, timestamp: int) -> Reading:
        """Reads configuration, host and GPUs. Labels that bear a time bear this one."""
        text = self._configuration()
        config = text.parsed.config or SharingConfig()
        settings = options_.settle(self._options, config.flags)
        inventory, failures = self._devices()
        if inventory is None and not settings.fails_without_driver:
            # No failure then: until the driver answers for the first time, the labels are those of a node without GPUs.
            text = replace(text, notes=(*text.notes, *failures))
            inventory, failures = self._inventory or Inventory(), ()
        reading = Reading(
            source=text.source,
            settings=settings,
            failures=(*text.failures, *failures),
            notes=text.notes,
        )
        return reading if inventory is None else self._labelled(reading, inventory, text.parsed.config, timestamp)

    def _labelled(
        self, reading: Reading, inventory: Inventory, config: SharingConfig | None, timestamp: int
    ) -> Reading:
        settings = reading.settings
        wanted = _Wanted(config, settings.mig_strategy) if config is not None else None
        built, strategy = self._built(inventory, wanted, settings.mig_strategy)
        facts = discovery.read_facts(
            self._files,
            machine_file=settings.machine_type_file,
            timestamp=timestamp if settings.has_timestamp else None,
        )
        return replace(
            reading,
            labels=labels.build_labels(inventory, built.pools, facts, strategy),
            failures=(*reading.failures, *_beyond_discovery(inventory, config)),
            notes=(*reading.notes, *map(str, (*built.problems, *built.unserved, *built.warnings))),
        )

    def _configuration(self) -> _Text:
        if not self._options.config_file:
            return _Text()
        source = configuration.read_file(self._files.path(self._options.config_file))
        if source.problem is not None:
            return _Text(source=source, parsed=ParsedSharing(config=None), failures=(str(source.problem),))
        parsed = parse_sharing(source.content)
        return _Text(
            source=source,
            parsed=parsed,
            failures=tuple(str(problem) for problem in parsed.problems if not problem.only_ours),
            notes=tuple(map(str, (*(each for each in parsed.problems if each.only_ours), *parsed.warnings))),
        )

    def _devices(self) -> tuple[Inventory | None, tuple[str, ...]]:
        """The GPUs, and which of them cannot be read; None: the driver does not answer."""
        try:
            # Connected to for the reading only: what has come or gone meanwhile is seen by whoever connects anew.
            self._nvml.start()
            read = discovery.read_inventory(self._nvml, self._files)
        except DeviceError as error:
            return None, (str(error),)
        finally:
            self._nvml.stop()
        self._inventory = discovery.with_lost(self._inventory, read)
        return self._inventory, tuple(problem.message for problem in read.problems if _GPU.fullmatch(problem.path))

    def _built(self, inventory: Inventory, wanted: _Wanted | None, strategy: MigStrategy) -> tuple[Built, MigStrategy]:
        """What an agent would serve: what is wanted, else what was, else the devices unshared."""
        refused: tuple[Problem, ...] = ()
        for each in filter(None, (wanted, self._in_force)):
            built = building.build_pools(inventory, with_mps_root(each.config), each.strategy)
            if not built.problems:
                self._in_force = each
                return replace(built, problems=refused), each.strategy
            refused = refused or built.problems
        plain = building.build_pools(inventory, SharingConfig(), strategy)
        return replace(plain, problems=refused or plain.problems), strategy


def _beyond_discovery(inventory: Inventory, config: SharingConfig | None) -> Iterator[str]:
    """What GPU feature discovery has no labels for."""
    if config is not None and config.strategy is Strategy.MPS and any(gpu.mig_enabled for gpu in inventory.gpus):
        yield "MPS is configured, and MIG is on: MPS does not share MIG devices"
    if inventory.gpus and not labels.is_version(inventory.driver_version):
        yield f'the driver\'s version "{inventory.driver_version}" is not of the form 550.90.07'
    if inventory.gpus and inventory.cuda_version is None:
        yield "the driver does not tell which version of CUDA it supports"
