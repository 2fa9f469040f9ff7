"""`gpushare plan`: what a change would make of every node, before it is made."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from gpushare.cli import clusters, inventories, texts
from gpushare.errors import GpuShareError, UsageError
from gpushare.kube import clock

if TYPE_CHECKING:
    from gpushare.plan.preview import Preview


@click.command("plan", short_help="what a change would make of every node: configuration, resources, labels, pods")
@click.option(
    "--file", "-f", "files", multiple=True, metavar="FILE",
    help="ClusterPolicies and ConfigMaps, as if they were applied; - is standard input. May be given several times.",
)  # fmt: skip
@click.option(
    "--label", "labels", multiple=True, nargs=2, metavar="NODE KEY=VALUE",
    help="A label, as if it were set; KEY- takes it away. May be given several times.",
)  # fmt: skip
@click.option(
    "--offline", type=click.Path(dir_okay=False, path_type=Path),
    help="No cluster, but the nodes of this scenario of the sandbox, on which nothing of ours is yet.",
)  # fmt: skip
@click.option(
    "--namespace", "-n", default="gpu-operator", show_default=True, metavar="NAME", help="The operator's namespace."
)
@clusters.KUBECONFIG
@inventories.OUTPUT
def command(*, output: str | None, **options: Any) -> int:
    """Shows what controller and agents would make of a change, by their own code. Reads only; nothing is changed.

    Exit codes: 0 all of it can be had; 1 something would be refused; 2 wrong usage, or the cluster cannot be read.
    """
    from gpushare.views import documents  # late: it loads YAML
    from gpushare.views import preview as views

    try:
        preview = _preview(**options)
    except UsageError as error:
        raise click.UsageError(str(error)) from error
    except GpuShareError as error:
        raise clusters.NotJudged(str(error)) from error
    click.echo(documents.build_text(views.build_document(preview), output) if output else views.build_text(preview))
    return int(preview.refused)


def _preview(
    *,
    files: Iterable[str],
    labels: Iterable[tuple[str, str]],
    offline: Path | None,
    namespace: str,
    kubeconfig: Path | None,
) -> Preview:
    from gpushare.cli import snapshots  # late: it loads half of the controller
    from gpushare.plan.overlay import find_unread, lay_over
    from gpushare.plan.preview import build_preview

    given = [manifest for file in files for manifest in texts.read_manifests(file)]
    changes = _label_changes(labels)
    seen = snapshots.describe_cluster(offline, namespace) if offline else snapshots.read_cluster(kubeconfig, namespace)
    now = clock.now()
    objects = lay_over(seen.objects, given, changes, namespace=namespace, now=now)
    before, after = (snapshots.build_snapshot(each, seen.settings) for each in (seen.objects, objects))
    preview = build_preview(before, after, seen.hardware, now)
    return replace(preview, warnings=(*find_unread(given), *preview.warnings))


def _label_changes(labels: Iterable[tuple[str, str]]) -> dict[str, dict[str, str | None]]:
    changes: dict[str, dict[str, str | None]] = {}
    for node, text in labels:
        key, separator, value = text.partition("=")
        if not separator and not key.endswith("-"):
            raise UsageError(f"--label {node} {text}: write KEY=VALUE, or KEY- to take it away")
        changes.setdefault(node, {})[key if separator else key[:-1]] = value if separator else None
    return changes
