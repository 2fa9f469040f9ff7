"""The process that brings the CRDs of a cluster up to this version. The chart runs it before an upgrade: Helm never changes CRDs.

`main` is the process; `run` is the same without anything that belongs to a process.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from gpushare.domain import manifests
from gpushare.domain.manifests import Manifest
from gpushare.errors import ClusterRefused, ClusterUnavailable, Conflict, UsageError
from gpushare.kube import credentials
from gpushare.kube.backoff import Backoff
from gpushare.kube.cluster import Cluster
from gpushare.kube.lean import LeanCluster
from gpushare.render import templates
from gpushare.serving.arguments import Arguments
from gpushare.serving.processes import WRONG_USAGE, Command, Signals, run_until

_FAILED: Final = 1
_ABOUT: Final = """\
Creates the CRDs ClusterPolicy and GPUNode, or brings those that are there up to this version. Objects of theirs stay.

Exit codes: 0 they are up to date, 1 they are not (the log says why), 2 wrong usage.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class DefinitionsOptions:
    """Which cluster."""

    kubeconfig: Path | None = None
    """None: the service account of the pod."""
    context: str = ""
    timeout_seconds: float = 60.0


def _build_parser() -> Arguments:
    parser = Arguments("crds", about=_ABOUT)
    add = parser.add_argument
    parser.add_cluster()
    add("--timeout-seconds", metavar="N", type=float, default=60.0, help="give up after this time (default: 60)")
    parser.add_help_flag()
    return parser


def help_text() -> str:
    """What `--help` prints."""
    return _build_parser().format_help()


def parse(argv: Sequence[str]) -> DefinitionsOptions:
    """Reads flags.

    Raises:
        UsageError: an unknown flag, or a value that cannot be; says which.
    """
    given = _build_parser().parse_args(list(argv))
    if not given.timeout_seconds > 0:
        raise UsageError(f"--timeout-seconds {given.timeout_seconds:g}: expected a number above 0")
    return DefinitionsOptions(kubeconfig=given.kubeconfig, context=given.context, timeout_seconds=given.timeout_seconds)


_COMMAND: Final = Command(name="crds", usage=help_text)


def main(argv: Sequence[str], environ: Mapping[str, str]) -> int:
    """Brings the CRDs up to date once. Returns 0 where they are, 1 where they are not, 2 for wrong usage."""

    async def work(_: DefinitionsOptions, signals: Signals) -> int:
        return await run(argv, environ, root=Path("/"), log=logging.getLogger("gpushare.crds"), stop=signals.stop)

    return _COMMAND.run(argv, lambda: parse(argv), work)


async def run(
    argv: Sequence[str], environ: Mapping[str, str], *, root: Path, log: logging.Logger, stop: asyncio.Event
) -> int:
    """Works until the CRDs are up to date, the time is over, or `stop` is set. Returns what `main` returns."""
    try:
        options = parse(argv)
        given = options.kubeconfig
        found = credentials.from_kubeconfig(given, options.context) if given else credentials.in_cluster(root, environ)
        cluster = LeanCluster(found)
    except UsageError as error:
        log.error("wrong usage", extra={"reason": str(error)})  # noqa: TRY400 - the text says it all
        return WRONG_USAGE
    try:
        reason = (
            "" if await run_until(upgrade(cluster, log), stop, seconds=options.timeout_seconds) else "the time is over"
        )
    except ClusterRefused as refused:
        reason = str(refused)
    finally:
        await cluster.close()
    if reason:
        log.error("not all CRDs are up to date", extra={"reason": reason})
        return _FAILED
    return 0


async def upgrade(cluster: Cluster, log: logging.Logger) -> None:
    """Brings each CRD up to date; what the API server cannot do yet is tried again. Raises `ClusterRefused`."""
    for definition in templates.read_definitions():
        backoff = Backoff(first=0.2, most=5.0)
        while True:
            try:
                await _upgrade(cluster, definition)
                break
            except (ClusterUnavailable, Conflict) as error:
                log.warning("tries again", extra={"crd": definition["metadata"]["name"], "reason": str(error)})
            await asyncio.sleep(backoff.next())
        log.info("crd is up to date", extra={"crd": definition["metadata"]["name"]})


async def _upgrade(cluster: Cluster, definition: Manifest) -> None:
    kind, name = manifests.CUSTOM_RESOURCE_DEFINITION, definition["metadata"]["name"]
    found = await cluster.get(kind, name)
    if found is None:
        await cluster.create(definition)
    else:
        # Replaced rather than applied: what the new version has no more, whoever made the old one still owns.
        await cluster.replace({**found, "spec": definition["spec"]})
