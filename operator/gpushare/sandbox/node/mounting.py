"""All volumes of one pod: set up before its containers start, kept up to date while they run. Used by the pod's worker."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path
from typing import Any

from gpushare.domain.manifests import Manifest
from gpushare.errors import GpuShareError
from gpushare.sandbox.node.environment import Surroundings
from gpushare.sandbox.node.services import Services
from gpushare.sandbox.node.sources import VolumeSources
from gpushare.sandbox.node.volumes import MountFailed


class PodVolumes:
    """The volumes of one pod."""

    def __init__(self, services: Services, pod: Manifest, around: Surroundings, *, only_check: bool) -> None:
        """`only_check`: nothing is written, since no program of ours will read it; what is missing is still noticed."""
        self._services = services
        self._pod = pod
        self._sources = VolumeSources(services.cluster, services.folders, pod, around)
        self._only_check = only_check
        self._volumes = {volume["name"]: volume for volume in pod["spec"].get("volumes") or ()}
        self._renewals: dict[str, float] = {}
        self.paths: dict[str, Path] = {}
        """Where each volume lies, by name."""

    async def try_mount(self) -> bool:
        """Sets up all volumes; False where some cannot be yet, which an Event tells."""
        complete = True
        for name in self._volumes:
            try:
                await self._mount(name)
            except MountFailed as failure:
                self._services.recorder.warning(self._pod, "FailedMount", str(failure))
                complete = False
            except GpuShareError as error:
                self._services.recorder.warning(self._pod, "FailedMount", str(MountFailed(name, str(error))))
                complete = False
        return complete

    async def renew(self) -> None:
        """Replaces tokens before they run out, and follows ConfigMaps, until cancelled; ends where there are none."""
        while self._renewals:
            name = min(self._renewals, key=self._renewals.__getitem__)
            await asyncio.sleep(max(0.0, self._renewals[name] - time.time()))
            try:
                await self._mount(name)
            except GpuShareError as error:
                # What is there stays, also where a ConfigMap has gone.
                self._services.log.warning("cannot renew volume", extra={"volume": name, "reason": str(error)})
                self._renewals[name] = time.time() + self._services.pace.retry

    async def _mount(self, name: str) -> None:
        volume: dict[str, Any] = self._volumes[name]
        if self._only_check:
            await self._sources.check(volume)
            return
        mounted = await self._sources.mount(volume)
        self.paths[name] = mounted.path
        if mounted.renew_at is not None:
            self._renewals[name] = mounted.renew_at
        if "configMap" in volume or "secret" in volume:
            self._renewals[name] = time.time() + self._services.pace.refresh
