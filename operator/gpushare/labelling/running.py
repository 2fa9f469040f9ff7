"""The labelling process at work: reads, publishes, waits. Made and run by `app`."""

from __future__ import annotations

import asyncio
import logging
import math
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from gpushare import names
from gpushare.agent import configuration, connecting
from gpushare.errors import GpuShareError, UsageError
from gpushare.host.files import HostFiles
from gpushare.kube.backoff import Backoff
from gpushare.kube.cluster import Cluster
from gpushare.labelling.options import LabelOptions, LabelSettings
from gpushare.labelling.publishing import LabelFile, LabelStream, NodeFeature, Output
from gpushare.labelling.reading import Reader, Reading
from gpushare.nvml.port import Nvml
from gpushare.serving.processes import Signals

_FIRST_RETRY_SECONDS: Final = 1.0
_LONGEST_RETRY_SECONDS: Final = 30.0


class Labelling:
    """One node's labels. `run` it once."""

    def __init__(
        self, options: LabelOptions, environ: Mapping[str, str], root: Path, nvml: Nvml, log: logging.Logger
    ) -> None:
        self._options = options
        self._environ = environ
        self._root = root
        self._files = HostFiles(root)
        self._log = log
        self._reader = Reader(options, self._files, nvml)
        self._cluster: Cluster | None = None
        self._backoff = Backoff(first=_FIRST_RETRY_SECONDS, most=_LONGEST_RETRY_SECONDS)
        self._said: object = None
        """What the log has of the last pass; the same is not said again."""

    async def run(self, signals: Signals) -> bool:
        """Labels once, or until it is told to stop. False: the one try failed.

        Raises:
            UsageError: it was told to write to a cluster, and was not told enough to do so.
        """
        try:
            timestamp = _now()
            while True:
                if signals.again.is_set():
                    signals.again.clear()
                    timestamp = _now()
                reading = await asyncio.to_thread(self._reader.read, timestamp)
                is_done = await self._publish(reading)
                if reading.settings.oneshot:
                    return is_done
                await self._pause(reading, signals, is_done=is_done)
                if signals.stop.is_set():
                    return True
        finally:
            if self._cluster is not None:
                await self._cluster.close()

    async def _publish(self, reading: Reading) -> bool:
        """Whether all went well."""
        # Before anything else: what cannot ever work is to be said whether the driver answers or not.
        output = self._output(reading.settings)
        failures = reading.failures
        if reading.labels is not None and not (failures and reading.settings.oneshot):
            try:
                await output.publish(reading.labels)
            except (OSError, GpuShareError) as error:
                failures = (*failures, f"labels cannot be written: {error}")
        self._say(reading, failures)
        return not failures

    def _output(self, settings: LabelSettings) -> Output:
        if not settings.uses_node_feature:
            path = settings.output_file
            return LabelFile(self._files.path(path)) if path else LabelStream(sys.stdout)
        options = self._options
        if not options.namespace:
            raise UsageError("the namespace of NodeFeature objects is empty; set NAMESPACE or give --namespace")
        if self._cluster is None:
            self._cluster = self._connect()
        return NodeFeature(
            self._cluster, namespace=options.namespace, node=options.node_name, pod=options.pod_name, log=self._log
        )

    def _connect(self) -> Cluster:
        options = self._options
        cluster = connecting.connect(options.kubeconfig, options.node_name, self._environ, self._root, self._log)
        if cluster is None:
            raise UsageError(
                "labels are to be written to a NodeFeature object, and there is no cluster: give --kubeconfig, "
                "or --use-node-feature-api=false for a file"
            )
        return cluster

    def _say(self, reading: Reading, failures: tuple[str, ...]) -> None:
        labels = {key: value for key, value in (reading.labels or {}).items() if key != names.LABEL_TIMESTAMP}
        said = (labels, failures, reading.notes)
        if said == self._said:
            return
        self._said = said
        extra = {"labels": len(reading.labels or {}), "notes": list(reading.notes)}
        if failures:
            self._log.warning("labels are not as they should be", extra={**extra, "reasons": list(failures)})
        else:
            self._log.info("labelled", extra=extra)

    async def _pause(self, reading: Reading, signals: Signals, *, is_done: bool) -> None:
        """Until it is time again, or until somebody asks for it, or the configuration is another."""
        seconds = reading.settings.sleep_seconds
        if is_done:
            self._backoff.reset()
        else:
            seconds = min(seconds, self._backoff.next())
        waits = [signals.stop.wait(), signals.again.wait(), self._until_configured_anew(reading)]
        tasks = [asyncio.ensure_future(wait) for wait in waits]
        try:
            timeout = None if math.isinf(seconds) else seconds
            await asyncio.wait(tasks, timeout=timeout, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def _until_configured_anew(self, reading: Reading) -> None:
        if not self._options.config_file:
            await asyncio.Event().wait()
        path = self._files.path(self._options.config_file)
        while configuration.read_file(path) == reading.source:  # noqa: ASYNC110 - a file has no event
            await asyncio.sleep(configuration.FILE_POLL_SECONDS)


def _now() -> int:
    return int(time.time())
