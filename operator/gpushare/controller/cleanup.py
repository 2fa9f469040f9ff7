"""The cleanup process: before an uninstall, removes what the controller has made. The chart runs it as a hook.

`main` is the process; `run` is the same without anything that belongs to a process.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from gpushare import names
from gpushare.controller.cleaning import Cleaning
from gpushare.errors import UsageError
from gpushare.kube.lean import LeanCluster
from gpushare.kube.placing import find_place
from gpushare.serving.arguments import Arguments
from gpushare.serving.processes import WRONG_USAGE, Command, Signals, run_until

_FAILED: Final = 1
_ABOUT: Final = """\
Stops the controller and removes what it has made: labels of nodes, GPUNodes, DaemonSets with their accounts and rights.
Never a CRD, a ClusterPolicy or a ConfigMap, and nothing of anybody else. Once more does no harm.

Exit codes: 0 nothing of ours is left, 1 something is (the log says what and why), 2 wrong usage.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class CleanupOptions:
    """How one cluster is cleaned up."""

    namespace: str = ""
    """The operator's own; empty: that of the pod or of the kubeconfig's context."""
    kubeconfig: Path | None = None
    """None: the service account of the pod."""
    context: str = ""
    timeout_seconds: float = 60.0


def _build_parser() -> Arguments:
    parser = Arguments("cleanup", about=_ABOUT)
    add = parser.add_argument
    add("--namespace", metavar="NAME", default="", help=f"the operator's namespace (default: ${names.ENV_NAMESPACE})")
    parser.add_cluster()
    add("--timeout-seconds", metavar="N", type=float, default=60.0, help="give up after this time (default: 60)")
    parser.add_help_flag()
    return parser


def help_text() -> str:
    """What `--help` prints."""
    return _build_parser().format_help()


def parse(argv: Sequence[str], environ: Mapping[str, str]) -> CleanupOptions:
    """Reads flags, which win, and environment.

    Raises:
        UsageError: an unknown flag, or a value that cannot be; says which.
    """
    given = _build_parser().parse_args(list(argv))
    if not given.timeout_seconds > 0:
        raise UsageError(f"--timeout-seconds {given.timeout_seconds:g}: expected a number above 0")
    return CleanupOptions(
        namespace=given.namespace or environ.get(names.ENV_NAMESPACE, ""),
        kubeconfig=given.kubeconfig,
        context=given.context,
        timeout_seconds=given.timeout_seconds,
    )


_COMMAND: Final = Command(name="cleanup", usage=help_text)


def main(argv: Sequence[str], environ: Mapping[str, str]) -> int:
    """Cleans up once. Returns 0 where nothing is left, 1 where something is, 2 for wrong usage."""

    async def work(_: CleanupOptions, signals: Signals) -> int:
        return await run(argv, environ, root=Path("/"), log=logging.getLogger("gpushare.cleanup"), stop=signals.stop)

    return _COMMAND.run(argv, lambda: parse(argv, environ), work)


async def run(
    argv: Sequence[str], environ: Mapping[str, str], *, root: Path, log: logging.Logger, stop: asyncio.Event
) -> int:
    """Cleans up until nothing is left, the time is over, or `stop` is set. Returns what `main` returns."""
    try:
        options = parse(argv, environ)
        credentials, namespace = find_place(options, environ, root)
        cluster = LeanCluster(credentials)
    except UsageError as error:
        log.error("wrong usage", extra={"reason": str(error)})  # noqa: TRY400 - the text says it all
        return WRONG_USAGE
    cleaning = Cleaning(cluster, namespace, log)
    try:
        is_clean = await run_until(cleaning.run(), stop, seconds=options.timeout_seconds)
    finally:
        await cluster.close()
    if not is_clean:
        log.error("something is left", extra={"left": cleaning.remainder})
        return _FAILED
    log.info("nothing of ours is left", extra={"namespace": namespace})
    return 0
