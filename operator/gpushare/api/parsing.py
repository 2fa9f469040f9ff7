"""From the text of a sharing configuration to a value, or to everything that is wrong with it.

Called by the agent before it applies a text, by the controller before it assigns one, and by `gpushare validate`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from gpushare import names
from gpushare.api.sharing import DiscoveryFlags, Extension, Flags, Imex, PluginFlags, SharedResource, SharingConfig
from gpushare.domain.pools import Allocation, Strategy
from gpushare.errors import ConfigurationError, Problem

if TYPE_CHECKING:
    from gpushare.api import schema
    from gpushare.api.documents import Document

_SHORTEST_SLEEP: Final = 1.0
_MAX_NAME: Final = 63


@dataclass(frozen=True, slots=True, kw_only=True)
class ParsedSharing:
    """What a text says, or why it cannot be used."""

    config: SharingConfig | None
    """None exactly when there are problems."""
    problems: tuple[Problem, ...] = ()
    warnings: tuple[Problem, ...] = ()
    """Said, and applied all the same."""


def parse_sharing(text: str) -> ParsedSharing:
    """Reads a configuration in the format of NVIDIA's device plugin, strictly. Never raises.

    An empty text, or one of comments only, is the default: nothing is shared.
    """
    if not text.strip():
        return ParsedSharing(config=SharingConfig())
    # Late: an agent without a configuration text loads neither YAML nor pydantic, which cost it a third of its start.
    from pydantic import ValidationError

    from gpushare.api import documents, schema, wording

    try:
        document = documents.read_document(text)
        model = schema.Configuration.model_validate(document.data if document.data is not None else {})
    except ConfigurationError as error:
        return ParsedSharing(config=None, problems=error.problems)
    except ValidationError as error:
        return ParsedSharing(config=None, problems=wording.problems_of(error, document), warnings=document.warnings)
    problems = tuple(_contradictions(model, document))
    warnings = (*document.warnings, *_oddities(model, document))
    return ParsedSharing(config=None if problems else _config_of(model), problems=problems, warnings=warnings)


def _contradictions(model: schema.Configuration, document: Document) -> Iterator[Problem]:
    """What no single key is to blame for."""
    sharing = model.sharing
    if sharing is not None and sharing.time_slicing is not None and sharing.mps is not None:
        message = "timeSlicing and mps exclude each other; keep one of the two"
        yield Problem(path="sharing", message=message, line=document.line_of(("sharing",)))
    for word, block in _blocks(model):
        yield from _double_names(word, block, document)
    if model.gpushare is not None and model.gpushare.fractions != "none":
        message = (
            f'"{model.gpushare.fractions}" is not served by this version; remove it, and share by timeSlicing or mps'
        )
        path = ("gpushare", "fractions")
        yield Problem(path="gpushare.fractions", message=message, line=document.line_of(path))


def _double_names(word: str, block: schema.Replicated, document: Document) -> Iterator[Problem]:
    seen: dict[str, str] = {}
    offered: dict[str, str] = {}
    for position, entry in enumerate(block.resources):
        location = ("sharing", word, "resources", position)
        path, line = f"sharing.{word}.resources[{position}]", document.line_of((*location, "name"))
        shared_as = _offered_as(block, entry)
        if len(shared_as) > _MAX_NAME:
            message = (
                f'"{shared_as}" has {len(shared_as)} characters; Kubernetes takes {_MAX_NAME}: give a shorter rename'
            )
            yield Problem(path=f"{path}.name", message=message, line=line)
        if entry.name in seen:
            message = f'"{entry.name}" is already shared by {seen[entry.name]}; keep one of the two'
            yield Problem(path=f"{path}.name", message=message, line=line)
        elif shared_as in offered:
            message = f'"{shared_as}" is already what {offered[shared_as]} is offered as; give another rename'
            yield Problem(path=f"{path}.rename", message=message, line=document.line_of((*location, "rename")))
        seen.setdefault(entry.name, path)
        offered.setdefault(shared_as, path)


def _oddities(model: schema.Configuration, document: Document) -> Iterator[Problem]:
    """What is allowed but does not do what its writer may think."""
    for word in ("gpus", "mig"):
        if getattr(model.resources, word, None):
            message = "patterns are ignored, as by NVIDIA's device plugin; every device has its usual resource name"
            yield Problem(path=f"resources.{word}", message=message, line=document.line_of(("resources", word)))
    interval = model.flags.gfd.sleep_interval if model.flags and model.flags.gfd else None
    if interval is not None and interval < _SHORTEST_SLEEP:
        location = ("flags", "gfd", "sleepInterval")
        message = "is less than a second (a number alone counts nanoseconds); write 60s or the like"
        yield Problem(path="flags.gfd.sleepInterval", message=message, line=document.line_of(location))
    for word, block in _blocks(model):
        for position, entry in enumerate(block.resources):
            if entry.replicas == 1 and entry.rename is not None:
                message = "has no effect with replicas 1, which means not shared"
                line = document.line_of(("sharing", word, "resources", position, "rename"))
                yield Problem(path=f"sharing.{word}.resources[{position}].rename", message=message, line=line)


def _blocks(model: schema.Configuration) -> Iterator[tuple[str, schema.Replicated]]:
    if model.sharing is not None:
        if model.sharing.time_slicing is not None:
            yield "timeSlicing", model.sharing.time_slicing
        if model.sharing.mps is not None:
            yield "mps", model.sharing.mps


def _offered_as(block: schema.Replicated, entry: schema.Entry) -> str:
    if entry.replicas == 1:
        return entry.name
    return entry.rename or (entry.name + names.SUFFIX_RENAMED if block.rename_by_default else entry.name)


def _config_of(model: schema.Configuration) -> SharingConfig:
    word, block = next(_blocks(model), ("", None))
    entries = block.resources if block is not None else []
    resources = tuple(
        SharedResource(
            path=f"sharing.{word}.resources[{position}]",
            name=entry.name,
            replicas=entry.replicas,
            offered_as=_offered_as(block, entry) if block is not None else entry.name,
            devices=entry.devices,
        )
        for position, entry in enumerate(entries)
    )
    strategy = Strategy.MPS if word == "mps" else Strategy.TIME_SLICING
    refuses = block.fail_requests_greater_than_one if block is not None else False
    return SharingConfig(
        strategy=strategy if any(resource.replicas > 1 for resource in resources) else Strategy.NONE,
        resources=resources,
        # Unset means true for MPS: two shares are still one client's memory limit. As NVIDIA's plugin has it.
        fail_requests_greater_than_one=word == "mps" if refuses is None else refuses,
        flags=_flags_of(model.flags),
        imex=Imex(
            channel_ids=tuple(model.imex.channel_ids or ()) if model.imex else (),
            required=bool(model.imex and model.imex.required),
        ),
        extension=_extension_of(model.gpushare),
    )


def _flags_of(block: schema.FlagsBlock | None) -> Flags:
    if block is None:
        return Flags()
    fields = dict(block)
    plugin, gfd = fields.pop("plugin"), fields.pop("gfd")
    return Flags(
        **fields, plugin=_plugin_flags_of(plugin), gfd=DiscoveryFlags(**dict(gfd)) if gfd else DiscoveryFlags()
    )


def _plugin_flags_of(block: schema.PluginBlock | None) -> PluginFlags:
    if block is None:
        return PluginFlags()
    fields = dict(block)
    strategies, policy = fields.pop("device_list_strategy"), fields.pop("shared_devices_allocation_policy")
    return PluginFlags(
        **fields,
        device_list_strategy=tuple(strategies) if strategies is not None else None,
        shared_devices_allocation_policy=Allocation(policy) if policy else None,
    )


def _extension_of(block: schema.ExtensionBlock | None) -> Extension:
    return Extension(on_shrink=block.on_shrink, allocation=block.allocation) if block is not None else Extension()
