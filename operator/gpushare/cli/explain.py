"""`gpushare explain`: why a pod waits or got its GPU, why a node runs what it runs."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

import click

from gpushare.cli import clusters, inventories
from gpushare.errors import GpuShareError, UsageError

if TYPE_CHECKING:
    from gpushare.cli.pictures import Picture
    from gpushare.domain.manifests import Manifest
    from gpushare.views.explanations import Explanation

_POD_WORDS = frozenset({"pod", "pods", "po"})
_DEFAULT = "default"
_NODE_WORDS = frozenset({"node", "nodes", "no", "gpunode", "gpunodes"})


@click.command("explain", short_help="why a pod waits or got its GPU; why a node runs what it runs")
@click.argument("names", nargs=-1, required=True, metavar="POD|NODE")
@click.option(
    "--namespace", "-n", default="", metavar="NAME",
    help="The pod's namespace; default: that of the kubeconfig's context, else `default`.",
)  # fmt: skip
@clusters.FILES
@clusters.KUBECONFIG
@inventories.OUTPUT
def command(
    *, names: tuple[str, ...], namespace: str, files: tuple[str, ...], kubeconfig: Path | None, output: str | None
) -> int:
    """Says it in words: pod/NAME, node/NAME, or NAME alone where only one of the two is there.

    For a pod that waits, every GPU node says why it does not take it, by the scheduler's own rules and with its own figures.
    """
    from gpushare.cli import pictures  # late: it loads half of the scheduler
    from gpushare.domain import manifests
    from gpushare.views import documents

    try:
        picture = pictures.read_picture(files, kubeconfig, manifests.RESOURCE_QUOTA)
        usual = "" if namespace or files else clusters.read_credentials(kubeconfig).namespace
        explanation = _explain(picture, *_read_name(names), namespace or usual or _DEFAULT)
    except UsageError as error:
        raise click.UsageError(str(error)) from error
    except GpuShareError as error:
        raise clusters.NotJudged(str(error)) from error
    click.echo(documents.build_text(explanation.to_json(), output) if output else explanation.to_text())
    return 0


def _read_name(words: tuple[str, ...]) -> tuple[str, str]:
    """Kind, empty where it is not said, and name, from `pod/a`, `pod a` or `a`."""
    kind, _, name = "/".join(words).rpartition("/")
    if kind and kind.lower() not in _POD_WORDS | _NODE_WORDS:
        raise UsageError(f"{'/'.join(words)}: pods and nodes can be explained; write pod/NAME or node/NAME")
    return kind.lower(), name


def _explain(picture: Picture, kind: str, name: str, namespace: str) -> Explanation:
    from gpushare.domain import manifests

    found = None if kind in _NODE_WORDS else _find(picture.of(manifests.POD), name, namespace)
    node = None if kind in _POD_WORDS else next((each for each in picture.gpu_nodes if each.name == name), None)
    if found is not None and node is not None:
        raise UsageError(f"there are a pod and a node of that name; write pod/{name} or node/{name}")
    if found is not None:
        return _explain_pod(picture, found)
    if node is not None:
        return _explain_node(picture, name)
    raise UsageError(f"there is no pod {namespace}/{name}, and no GPUNode {name}; -n names another namespace")


def _find(pods: Iterable[Manifest], name: str, namespace: str) -> Manifest | None:
    wanted = (name, namespace)
    return next((pod for pod in pods if (pod["metadata"]["name"], pod["metadata"].get("namespace")) == wanted), None)


def _explain_pod(picture: Picture, pod: Manifest) -> Explanation:
    from gpushare.placement.fitting import fit
    from gpushare.placement.requests import read_request
    from gpushare.placement.settings import RequestSettings
    from gpushare.scheduler.books import Stage
    from gpushare.views import holders
    from gpushare.views.explanations import PodPicture, explain_pod

    read = read_request(pod, RequestSettings())
    books, metadata, host = picture.books, pod["metadata"], pod["spec"].get("nodeName", "")
    uid = metadata["uid"]
    state, placed = books.nodes.get(host), books.pods.get(uid)
    node = next((each for each in picture.gpu_nodes if each.name == host), None)
    request = read.request
    room = picture.room(metadata["namespace"])
    fits = {name: fit(each, request, room) for name, each in books.nodes.items()} if request is not None else {}
    return explain_pod(
        PodPicture(
            pod=pod,
            read=read,
            node=state.without_pod(uid) if state is not None and state.mode is not None else None,
            decision=placed.decision if placed else None,
            held={name: tuple(grant.uuid for grant in grants) for name, grants in placed.containers.items()}
            if placed
            else {},
            parts=holders.list_parts_of(node, metadata["namespace"], metadata["name"]) if node is not None else (),
            is_confirmed=placed is not None and placed.stage is Stage.CONFIRMED,
            fits=fits,
            idle=picture.idle,
            known_resources=picture.known_resources,
        )
    )


def _explain_node(picture: Picture, name: str) -> Explanation:
    from gpushare.views import holders
    from gpushare.views.explanations import explain_node, list_holders

    node = next(each for each in picture.gpu_nodes if each.name == name)
    state = picture.books.nodes.get(name)
    if state is None or state.mode is None:
        return explain_node(node, None, holders.list_parts(node))
    indexes = {gpu.uuid: gpu.index for gpu in state.gpus}
    held_by = (
        (str(pod), {indexes[uuid]: use.memory_mib for uuid, use in pod.holding.items() if uuid in indexes})
        for pod in picture.books.pods.values()
        if pod.node == name
    )
    return explain_node(node, state, list_holders(held_by))
