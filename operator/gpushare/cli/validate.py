"""`gpushare validate`: what is wrong in files, before they are applied."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click

from gpushare.cli import clusters, inventories, texts
from gpushare.domain.devices import Inventory
from gpushare.errors import GpuShareError, UsageError


@click.command("validate", short_help="what is wrong in sharing configurations, ConfigMaps and policies")
@click.argument("files", metavar="FILE...|-", nargs=-1, required=True)
@click.option(
    "--fit", "-f", type=click.Path(dir_okay=False, path_type=Path),
    help="Whether it fits this hardware too: a node's description or a scenario of the sandbox.",
)  # fmt: skip
@click.option(
    "--node",
    default="",
    metavar="NAME",
    help="Which node of --fit; without --fit, the node of the cluster that it must fit.",
)
@clusters.KUBECONFIG
@inventories.OUTPUT
def command(*, files: tuple[str, ...], fit: Path | None, node: str, kubeconfig: Path | None, output: str | None) -> int:
    """Judges FILEs as the controller and the agent would: sharing configurations, ConfigMaps with one in each key,
    ClusterPolicies, several documents in a file; - is standard input.

    Exit codes: 0 fine, warnings too; 1 something would be refused; 2 wrong usage, or something cannot be read.
    """  # noqa: D205 - click shows it as one paragraph
    from gpushare.plan import validation  # late: it loads YAML and pydantic
    from gpushare.views import documents
    from gpushare.views import validation as views

    inventory = _inventory(fit, node, kubeconfig)
    try:
        found = {file: validation.check_text(texts.read_text(file), _policy_schema()) for file in files}
    except UsageError as error:
        raise click.UsageError(str(error)) from error
    together = validation.check_references([item for checked in found.values() for item in checked])
    ruling = next((item.policy.mig.strategy for item in together if item.policy is not None), "")
    if inventory is not None:
        together = tuple(validation.check_fit(item, inventory, ruling) for item in together)
    rest = iter(together)
    found = {file: tuple(next(rest) for _ in checked) for file, checked in found.items()}
    if output is not None:
        click.echo(documents.build_text(views.build_document(found), output))
    else:
        for file, checked in found.items():
            click.echo("\n".join(views.build_lines(file, checked)))
    return int(any(item.problems for item in together))


def _policy_schema() -> Mapping[str, Any]:
    from gpushare.domain import manifests
    from gpushare.plan import fields
    from gpushare.render import templates  # late: it loads templating

    kind = manifests.CLUSTER_POLICY.kind
    definitions = (each for each in templates.read_definitions() if each["spec"]["names"]["kind"] == kind)
    return fields.schema_of(next(definitions))


def _inventory(fit: Path | None, node: str, kubeconfig: Path | None) -> Inventory | None:
    if fit is not None:
        try:
            return inventories.read_inventory(fit, node)
        except click.ClickException as error:
            raise clusters.NotJudged(error.message) from error
    if not node:
        return None
    from gpushare.plan.hardware import inventory_of  # late: not without a cluster

    try:
        gpu_node = asyncio.run(clusters.read_gpu_node(kubeconfig, node))
    except UsageError as error:
        raise click.UsageError(str(error)) from error
    except GpuShareError as error:
        raise clusters.NotJudged(str(error)) from error
    return inventory_of(gpu_node.status)
