"""Describes devices to container runtimes by CDI, before an answer names them so. One step of each pass of the agent.

A device that is not described is not offered: a container that is given its name would not start. Blocks; called in threads.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Final

from gpushare.agent.deciding import Decision
from gpushare.agent.options import AgentOptions
from gpushare.api.sharing import IdStrategy
from gpushare.domain.devices import Inventory
from gpushare.domain.pools import Pool
from gpushare.errors import Problem
from gpushare.host import driver_files, driver_roots
from gpushare.host.cdi import CdiFolder
from gpushare.host.driver_files import Wanted
from gpushare.host.driver_roots import HOST_ROOT, Place
from gpushare.host.files import HostFiles
from gpushare.sharing import cdi
from gpushare.sharing.cdi import CdiOptions, Document, DriverFiles, Specifications

_REMEDY: Final = "install NVIDIA's container toolkit, or say where its program is with --nvidia-cdi-hook-path"


class Describer:
    """Keeps our CDI specifications as what is offered needs them."""

    def __init__(self, options: AgentOptions, files: HostFiles, log: logging.Logger) -> None:
        self._options = options
        self._files = files
        self._log = log
        self._folder = CdiFolder(files)
        self._documents: Mapping[str, Document] | None = None
        """What should be there; None: nobody needs any."""
        self._is_incomplete = False
        """Whether something was missing when it was last looked at."""
        self._writing = threading.Lock()
        """What is cleared must not be what is just being written."""

    def describe(self, decision: Decision, inventory: Inventory | None) -> Decision:
        """Writes what the decision needs described. Returns it without what cannot be, and with what is to be said about it."""
        with self._writing:
            return self._describe(decision, inventory)

    def _describe(self, decision: Decision, inventory: Inventory | None) -> Decision:
        if not decision.responses.uses_cdi:
            self._documents, self._is_incomplete = None, False
            return decision
        if inventory is None:
            # Nothing is offered yet; what was described before may be in use.
            return decision
        root, driver = self._read(decision, inventory)
        if not driver.libraries:
            self._is_incomplete = True
            return self._with_described(decision, {}, (_no_library(root, driver),))
        options = self._cdi_options(decision)
        found = cdi.build_specifications(inventory, decision.settings.mig_strategy, driver, options)
        described, problems = self._write(found.documents)
        problems = (*problems, *_missing(found))
        self._is_incomplete = bool(problems)
        notes = (*problems, *self._remarks(options))
        return self._with_described(decision, described, notes)

    def is_settled(self) -> bool:
        """Whether all that was to be described is, and still stands there as it was written."""
        return not self._is_incomplete and (self._documents is None or self._folder.holds(self._documents))

    def has_leftovers(self) -> bool:
        """Whether there are specifications of ours that no answer refers to any more."""
        return self._documents is None and not self._folder.holds({})

    def clear(self) -> None:
        """Removes leftovers. Only once no container holds a device: one that is restarted needs its description again."""
        with self._writing:
            if self.has_leftovers():
                problems = self._folder.apply({})
                self._log.info("CDI specifications removed", extra={"problems": list(map(str, problems))})

    def _read(self, decision: Decision, inventory: Inventory) -> tuple[Place, DriverFiles]:
        flags, responses = decision.settings.config.flags, decision.responses
        root = driver_roots.find_root(self._files, flags.plugin.container_driver_root, flags.nvidia_driver_root)
        dev = driver_roots.find_device_root(self._files, root, flags.nvidia_dev_root)
        wanted = Wanted(
            version=inventory.driver_version,
            nodes=_nodes_of(inventory),
            channels=responses.imex_channels,
            features=responses.features,
        )
        return root, driver_files.read_driver_files(self._files, root, dev, wanted)

    def _cdi_options(self, decision: Decision) -> CdiOptions:
        return CdiOptions(
            id_strategy=decision.responses.id_strategy,
            hook_path=decision.settings.config.flags.plugin.nvidia_ctk_path or cdi.DEFAULT_HOOK,
            disabled_hooks=frozenset(self._options.cdi_disable_hooks),
        )

    def _write(self, documents: Mapping[str, Document]) -> tuple[Mapping[str, frozenset[str]], tuple[Problem, ...]]:
        is_news = documents != self._documents
        self._documents = documents
        problems = self._folder.apply(documents)
        if is_news and not problems:
            devices = {kind: len(document["devices"]) for kind, document in documents.items()}
            self._log.info("CDI specifications written", extra={"devices": devices})
        return {kind: self._folder.described(kind, document) for kind, document in documents.items()}, problems

    def _with_described(
        self, decision: Decision, described: Mapping[str, frozenset[str]], notes: tuple[Problem, ...]
    ) -> Decision:
        names, responses = described.get(cdi.GPU, frozenset()), decision.responses
        channels = described.get(cdi.IMEX_CHANNEL, frozenset())
        return replace(
            decision,
            pools={name: _only_described(pool, names, responses.id_strategy) for name, pool in decision.pools.items()},
            responses=replace(
                responses,
                imex_channels=tuple(number for number in responses.imex_channels if str(number) in channels),
                cdi_features=frozenset(name for name in responses.features if described.get(name)),
            ),
            notes=(*decision.notes, *notes),
        )

    def _remarks(self, options: CdiOptions) -> Iterator[Problem]:
        if self._files.exists(HOST_ROOT) and not self._files.exists(HOST_ROOT + options.hook_path):
            message = f"is not on this host, and containers with a GPU need it to start; {_REMEDY}"
            yield Problem(path=options.hook_path, message=message)
        for flag in self._options.cdi_feature_flags:
            yield Problem(path="--cdi-feature-flags", message=f'"{flag}" is not known and has no effect')


def _nodes_of(inventory: Inventory) -> Iterable[str]:
    lists = (paths for gpu in inventory.gpus for paths in (gpu.paths, *(mig.paths for mig in gpu.mig)))
    return dict.fromkeys(path for paths in lists for path in paths)


def _only_described(pool: Pool, names: frozenset[str], strategy: IdStrategy) -> Pool:
    def name_of_device(index: str, uuid: str) -> str:
        return index if strategy is IdStrategy.INDEX else uuid

    shares = tuple(
        share if name_of_device(share.device_index, share.id.device) in names else replace(share, healthy=False)
        for share in pool.shares
    )
    return pool if shares == pool.shares else replace(pool, shares=shares)


def _no_library(root: Place, driver: DriverFiles) -> Problem:
    message = (
        f"libcuda.so.{driver.version} is not there (here: {root.seen}), so no device can be described by CDI and none is "
        "offered; say where the driver is with --driver-root and --driver-root-ctr-path"
    )
    return Problem(path=root.on_host, message=message)


def _missing(found: Specifications) -> Iterator[Problem]:
    for device, paths in found.missing.items():
        yield Problem(
            path=paths, message=f"is not on this host, so {device} cannot be described by CDI and is not offered"
        )
