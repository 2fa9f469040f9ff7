"""The controller's command line and environment. Parsed once, by `app`."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from gpushare import names
from gpushare.api.parsing import parse_sharing
from gpushare.domain.selectors import Selector
from gpushare.errors import UsageError
from gpushare.plan.schedules import build_hami
from gpushare.plan.snapshot import Settings
from gpushare.serving.arguments import Arguments

_NAMESPACE = re.compile(r"[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?")


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """How one controller runs."""

    namespace: str = ""
    """The operator's own; empty: that of the pod or of the kubeconfig's context."""
    image: str = ""
    policy: str = ""
    hami_nodes: bool = False
    hami_keys: Mapping[str, Any] = field(default_factory=dict)
    isolation: str = "none"
    kubeconfig: Path | None = None
    """None: the service account of the pod."""
    context: str = ""
    identity: str = ""
    """Name in the Lease; empty: a random one."""
    leader_elect: bool = True
    resync_seconds: float = 300.0
    canary: Selector | None = None
    """Labels of nodes that get what is new before the others; None: all at once."""
    stop_on_refusal: bool = False
    discovery_grace_seconds: float = 600.0
    """How long a node keeps everything without the labels of node feature discovery."""
    metrics_port: int | None = None
    """Port for metrics and health; None: neither is served."""
    metrics_address: str = ""
    """Address to serve them on; empty: all of them."""
    webhook_port: int | None = None
    """Port of the webhook that judges sharing configurations; None: there is none."""
    webhook_secret: str = ""
    """Secret with a certificate that somebody else makes; empty: it is made and renewed here."""
    log_level: str = "info"


def settings_of(options: Options, namespace: str) -> Settings:
    """What of it the plan goes by."""
    return Settings(
        namespace=namespace,
        image=options.image,
        policy=options.policy,
        hami_nodes=options.hami_nodes,
        hami_keys=options.hami_keys,
        isolation=options.isolation,
        canary=options.canary,
        stop_on_refusal=options.stop_on_refusal,
        discovery_grace_seconds=options.discovery_grace_seconds,
    )


_ABOUT = """\
Follows a ClusterPolicy: gives each GPU node its sharing configuration, runs the agents, labels nodes, and reports.

It runs as a Deployment in the operator's namespace, which gives it its rights. To try it by hand, name a cluster with
--kubeconfig and a namespace with --namespace; the kubeconfig's user then needs the rights of the Deployment's account.
"""


def _build_parser() -> Arguments:
    parser = Arguments(
        "controller",
        about=_ABOUT,
        epilog=f"{names.ENV_DEVICE_PLUGIN_IMAGE} in the environment is the image that the agents run.",
    )
    add = parser.add_argument
    add("--policy", metavar="NAME", default="", help="follow only this ClusterPolicy (default: the oldest)")
    add("--namespace", metavar="NAME", default="", help=f"the operator's namespace (default: ${names.ENV_NAMESPACE})")
    add(
        "--hami-node-label",
        choices=("true", "false"),
        default="false",
        help=f"nodes with the label {names.LABEL_HAMI_NODE}=on give out fractions, as with HAMi (default: false)",
    )
    add(
        "--hami-node-settings",
        metavar="JSON",
        default="{}",
        help='keys of the gpushare block of these nodes, such as {"slots": 20, "memoryScaling": 1.5} (default: none)',
    )
    add(
        "--fractions-isolation",
        choices=("none", "mps", "hami-core"),
        default="none",
        help="what isolates fractions on nodes whose labels ask for fractions (default: none)",
    )
    parser.add_cluster()
    add(
        "--leader-elect",
        choices=("true", "false"),
        default="true",
        help="hold a Lease, for several replicas (default: true)",
    )
    add(
        "--resync-seconds",
        metavar="N",
        type=float,
        default=300.0,
        help="seconds between passes that nothing asked for (default: 300)",
    )
    add(
        "--canary",
        metavar="SELECTOR",
        help="labels, such as pool=canary, of nodes that get a new revision first: the others get it once all of these have "
        f"applied it (default: ${names.ENV_CANARY}, else all nodes at once)",
    )
    add(
        "--stop-on-refusal",
        choices=("true", "false"),
        help="give a new revision in steps, to as many nodes at once as run it already, and to no more once one refuses it "
        f"(default: ${names.ENV_STOP_ON_REFUSAL}, else false)",
    )
    add(
        "--discovery-grace-seconds",
        metavar="N",
        type=float,
        default=600.0,
        help="how long a node keeps its agent, configuration and labels after node feature discovery has stopped to say that "
        "it has GPUs, as it does while it restarts (default: 600)",
    )
    add("--metrics-port", metavar="N", type=int, help="serve metrics and health on this port (default: not at all)")
    add("--metrics-address", metavar="IP", help=f"and on this address only (default: ${names.ENV_POD_IP}, else on all)")
    add(
        "--webhook-port",
        metavar="N",
        type=int,
        help="judge sharing configurations for the API server, over TLS on this port and the address above (default: not at all)",
    )
    add(
        "--webhook-secret",
        metavar="NAME",
        default="",
        help="Secret of type kubernetes.io/tls with its certificate (default: one of its own, renewed by itself)",
    )
    add("--log-level", choices=("debug", "info", "warning", "error"), default="info", help="the least that is logged")
    parser.add_help_flag()
    return parser


def help_text() -> str:
    """What `--help` prints."""
    return _build_parser().format_help()


def parse(argv: Sequence[str], environ: Mapping[str, str]) -> Options:
    """Reads flags, which win, and environment.

    Raises:
        UsageError: an unknown flag, or a value that cannot be; says which.
    """
    given = _build_parser().parse_args(list(argv))
    if not 0 < given.resync_seconds < math.inf:
        raise UsageError(f"--resync-seconds {given.resync_seconds:g}: expected a number above 0")
    if not 0 <= given.discovery_grace_seconds < math.inf:
        raise UsageError(f"--discovery-grace-seconds {given.discovery_grace_seconds:g}: expected a number, 0 or more")
    for flag, port in (("--metrics-port", given.metrics_port), ("--webhook-port", given.webhook_port)):
        if port is not None and not 0 <= port <= 65535:
            raise UsageError(f"{flag} {port}: expected a number from 0 to 65535")
    namespace = given.namespace or environ.get(names.ENV_NAMESPACE, "")
    if namespace and not _NAMESPACE.fullmatch(namespace):
        raise UsageError(f"namespace {namespace!r}: expected the name of a namespace, such as gpu-operator")
    return Options(
        namespace=namespace,
        image=environ.get(names.ENV_DEVICE_PLUGIN_IMAGE, ""),
        policy=given.policy,
        hami_nodes=given.hami_node_label == "true",
        hami_keys=_parse_hami_keys(given.hami_node_settings),
        isolation=given.fractions_isolation,
        kubeconfig=given.kubeconfig,
        context=given.context,
        identity=environ.get(names.ENV_POD_NAME, ""),
        leader_elect=given.leader_elect == "true",
        canary=_selector(given.canary, environ),
        stop_on_refusal=_is_true(given.stop_on_refusal, environ),
        resync_seconds=given.resync_seconds,
        discovery_grace_seconds=given.discovery_grace_seconds,
        metrics_port=given.metrics_port,
        metrics_address=environ.get(names.ENV_POD_IP, "") if given.metrics_address is None else given.metrics_address,
        webhook_port=given.webhook_port,
        webhook_secret=given.webhook_secret,
        log_level=given.log_level,
    )


def _selector(given: str | None, environ: Mapping[str, str]) -> Selector | None:
    source, text = ("--canary", given) if given is not None else (names.ENV_CANARY, environ.get(names.ENV_CANARY, ""))
    try:
        return Selector.parse(text) if text else None
    except ValueError as error:
        raise UsageError(f"{source}: {error}") from error


def _is_true(given: str | None, environ: Mapping[str, str]) -> bool:
    said = given if given is not None else environ.get(names.ENV_STOP_ON_REFUSAL, "") or "false"
    if said not in {"true", "false"}:
        raise UsageError(f"{names.ENV_STOP_ON_REFUSAL}: {said!r}: expected true or false")
    return said == "true"


def _parse_hami_keys(text: str) -> Mapping[str, Any]:
    try:
        keys = json.loads(text)
    except ValueError as error:
        raise UsageError(f'--hami-node-settings {text}: expected JSON, such as {{"slots": 20}}') from error
    if not isinstance(keys, dict) or "fractions" in keys:
        raise UsageError(f"--hami-node-settings {text}: expected keys of the gpushare block other than fractions")
    if problems := parse_sharing(build_hami(keys)).problems:
        raise UsageError(f"--hami-node-settings: {'; '.join(map(str, problems))}")
    return keys
