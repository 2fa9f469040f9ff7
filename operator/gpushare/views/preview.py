"""What a change would make of a cluster, node by node, as text and as data."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from gpushare.domain.gpunode import Config
from gpushare.plan.preview import NodePreview, Overuse, Preview
from gpushare.views.tables import build_table

_PODS = 10
"""How many pods a text names."""


def build_text(preview: Preview) -> str:
    """A table of all nodes, then what there is to say about each."""
    parts = [f"policy: {preview.policy or 'none'}"]
    rows = [row for node in preview.nodes for row in _rows(node)]
    if rows:
        parts.append(build_table(["NODE", "CONFIGURATION", "RESOURCE", "BEFORE", "AFTER"], rows))
    else:
        parts.append("no node has GPUs that are served, before or after")
    if preview.rehearsal.text:
        parts.append(f"roll-out: {preview.rehearsal.text}")
    notes = [f"{node.name}: {note}" for node in preview.nodes for note in _notes(node)]
    notes += [f"refused: {text}" for text in preview.refusals]
    notes += [f"warning: {text}" for text in preview.warnings]
    if notes:
        parts.append("\n".join(notes))
    return "\n\n".join(parts)


def build_document(preview: Preview) -> Mapping[str, Any]:
    """The same for programs."""
    return {
        "policy": preview.policy,
        "refused": preview.refused,
        "refusals": list(preview.refusals),
        "warnings": list(preview.warnings),
        "rollOut": {"steps": list(map(list, preview.rehearsal.steps)), "held": dict(preview.rehearsal.held)},
        "nodes": list(map(_node, preview.nodes)),
    }


def _rows(node: NodePreview) -> Iterator[list[str]]:
    first, second = node.name, _change_of(node)
    for resource in sorted({**node.resources_before, **node.resources_after}) or [""]:
        before, after = (amounts.get(resource) for amounts in (node.resources_before, node.resources_after))
        yield [first, second, resource or "-", _amount(before), _amount(after)]
        first = second = ""


def _amount(number: int | None) -> str:
    return "-" if number is None else str(number)


def _change_of(node: NodePreview) -> str:
    before, after = node.before, node.after
    if before == after:
        return _title(after)
    shown = (_title(before), _title(after))
    if shown[0] == shown[1] and before is not None and after is not None:
        shown = (f"{shown[0]} {before.revision}", f"{shown[1]} {after.revision}")
        if before.revision == after.revision:
            return f"{_title(after)}, MIG strategy {before.mig_strategy or '-'} -> {after.mig_strategy or '-'}"
    return " -> ".join(shown)


def _title(config: Config | None) -> str:
    if config is None:
        return "-"
    return config.name if not config.is_named else f"{config.name} ({config.reason.value})"


def _notes(node: NodePreview) -> Iterator[str]:
    for text in node.refusals:
        yield f"refused: {text.removeprefix(node.name + ' ')}"
    for overuse in node.overuse:
        yield _overuse_text(overuse)
    for key, (before, after) in node.labels.items():
        yield f"label {key}: {_value(before)} -> {_value(after)}"
    for text in node.warnings:
        yield f"warning: {text}"


def _value(value: str | None) -> str:
    return "(none)" if value is None else value or '""'


def _overuse_text(overuse: Overuse) -> str:
    more = len(overuse.pods) - _PODS
    pods = ", ".join(overuse.pods[:_PODS]) + (f" and {more} more" if more > 0 else "")
    using = f", by {pods}" if pods else ""
    return (
        f"over the limit: {overuse.in_use} of {overuse.resource} are in use{using}, and {overuse.total} would be offered; "
        "running pods stay, new ones wait"
    )


def _node(node: NodePreview) -> dict[str, Any]:
    return {
        "name": node.name,
        "configuration": {"before": _config(node.before), "after": _config(node.after)},
        "resources": {"before": dict(node.resources_before), "after": dict(node.resources_after)},
        "labels": {key: {"before": before, "after": after} for key, (before, after) in node.labels.items()},
        "overLimit": [
            {"resource": each.resource, "inUse": each.in_use, "offered": each.total, "pods": list(each.pods)}
            for each in node.overuse
        ],
        "refusals": list(node.refusals),
        "warnings": list(node.warnings),
    }


def _config(config: Config | None) -> dict[str, Any] | None:
    if config is None:
        return None
    body = config.to_json()
    del body["content"]
    return body
