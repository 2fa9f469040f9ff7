"""The scheduler's command line and environment. Parsed once, by `app`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from gpushare import names
from gpushare.errors import UsageError
from gpushare.serving.arguments import Arguments

_HIGHEST_PORT: Final = 65535
_LEAST_SECONDS: Final = 5.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """How one replica runs."""

    namespace: str = ""
    """The operator's own; empty: that of the pod or of the kubeconfig's context."""
    kubeconfig: Path | None = None
    """None: the service account of the pod."""
    context: str = ""
    name: str = ""
    """Of this replica, in the Lease; empty: a random one."""
    address: str = ""
    """Where the other replicas reach this one, and the only address that is listened on; empty: all, and they find it on
    127.0.0.1."""
    port: int = names.PORT_SCHEDULER
    metrics_port: int | None = None
    """Port for metrics and health; None: neither is served."""
    scheduler_name: str = names.SCHEDULER
    http_timeout: float = 30.0
    """Seconds: `httpTimeout` of the extender in kube-scheduler's configuration."""
    settings: Path | None = None
    leader_elect: bool = True
    secret: str = names.SECRET_SCHEDULER
    webhook: str = names.SCHEDULER
    """MutatingWebhookConfiguration that must trust the certificate."""
    hosts: tuple[str, ...] = ()
    """By which the API server and kube-scheduler know it, besides those of its Service."""
    log_level: str = "info"


_ABOUT = """\
Places pods that ask for a part of a GPU: an extender of kube-scheduler, which chooses the GPU, and an admission webhook, which
fills in what such pods leave out and refuses what can never run.

It runs as a Deployment in the operator's namespace. To try it by hand, name a cluster with --kubeconfig and a namespace
with --namespace; `gpushare sandbox` runs it in a cluster of its own.
"""


def _build_parser() -> Arguments:
    parser = Arguments("scheduler", about=_ABOUT)
    _add_serving(parser)
    _add_placing(parser)
    _add_cluster(parser)
    return parser


def _add_serving(parser: Arguments) -> None:
    add = parser.add_argument
    add(
        "--port",
        metavar="N",
        type=int,
        default=names.PORT_SCHEDULER,
        help="serve HTTPS on this port (default: %(default)s)",
    )
    add(
        "--address",
        metavar="IP",
        help=f"on this address, where other replicas find it too (default: ${names.ENV_POD_IP})",
    )
    add(
        "--host",
        metavar="NAME",
        action="append",
        default=[],
        help="another name or address in the certificate; repeatable",
    )
    add(
        "--secret",
        metavar="NAME",
        default=names.SECRET_SCHEDULER,
        help="where the certificate is kept (default: %(default)s)",
    )
    add(
        "--webhook",
        metavar="NAME",
        default=names.SCHEDULER,
        help="MutatingWebhookConfiguration that is told whom to trust (default: %(default)s)",
    )
    add("--metrics-port", metavar="N", type=int, help="serve metrics and health on this port (default: not at all)")


def _add_placing(parser: Arguments) -> None:
    add = parser.add_argument
    add(
        "--scheduler-name",
        metavar="NAME",
        default=names.SCHEDULER,
        help="scheduler that pods with fractions are given to; empty: they keep theirs (default: %(default)s)",
    )
    add(
        "--http-timeout",
        metavar="SECONDS",
        type=float,
        default=30.0,
        help="httpTimeout of this extender in kube-scheduler's configuration (default: 30)",
    )
    add("--settings", metavar="FILE", type=Path, help="YAML: names of resources, defaults, rules of admission")


def _add_cluster(parser: Arguments) -> None:
    add = parser.add_argument
    add("--namespace", metavar="NAME", default="", help=f"the operator's namespace (default: ${names.ENV_NAMESPACE})")
    parser.add_cluster()
    add(
        "--leader-elect",
        choices=("true", "false"),
        default="true",
        help="hold a Lease, for several replicas (default: true)",
    )
    add("--log-level", choices=("debug", "info", "warning", "error"), default="info", help="the least that is logged")
    parser.add_help_flag()


def help_text() -> str:
    """What `--help` prints."""
    return _build_parser().format_help()


def parse(argv: Sequence[str], environ: Mapping[str, str]) -> Options:
    """Reads flags, which win, and environment.

    Raises:
        UsageError: an unknown flag, or a value that cannot be; says which.
    """
    given = _build_parser().parse_args(list(argv))
    for flag, port in (("--port", given.port), ("--metrics-port", given.metrics_port)):
        if port is not None and not 0 <= port <= _HIGHEST_PORT:
            raise UsageError(f"{flag} {port}: expected a number from 0 to {_HIGHEST_PORT}")
    if given.http_timeout < _LEAST_SECONDS:
        raise UsageError(
            f"--http-timeout {given.http_timeout:g}: expected at least {_LEAST_SECONDS:g} seconds, as pods wait for each other"
        )
    return Options(
        namespace=given.namespace or environ.get(names.ENV_NAMESPACE, ""),
        kubeconfig=given.kubeconfig,
        context=given.context,
        name=environ.get(names.ENV_POD_NAME, ""),
        address=environ.get(names.ENV_POD_IP, "") if given.address is None else given.address,
        port=given.port,
        metrics_port=given.metrics_port,
        scheduler_name=given.scheduler_name,
        http_timeout=given.http_timeout,
        settings=given.settings,
        leader_elect=given.leader_elect == "true",
        secret=given.secret,
        webhook=given.webhook,
        hosts=tuple(given.host),
        log_level=given.log_level,
    )
