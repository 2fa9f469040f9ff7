"""What is wrong in files before they are applied: sharing texts, ConfigMaps of them, ClusterPolicies. For `gpushare validate`.

Read by the same code that the controller and the agent judge by, so that what passes here is what they take.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from gpushare.api.clusterpolicy import ClusterPolicy, parse_policy
from gpushare.api.documents import MAX_MANIFEST_BYTES, Document, path_of, read_document, split_documents
from gpushare.api.images import resolve_image
from gpushare.api.parsing import parse_sharing
from gpushare.api.sharing import SharingConfig
from gpushare.domain import manifests
from gpushare.domain.devices import Inventory, MigStrategy
from gpushare.errors import ConfigurationError, Problem
from gpushare.plan import checking
from gpushare.plan.fields import find_unknown
from gpushare.plan.snapshot import ConfigMap
from gpushare.sharing.building import build_pools
from gpushare.sharing.capability import with_mps_root

_EMPTY: Final = Problem(path="", message="it is empty; to share nothing, write `version: v1`")
_BINARY: Final = Problem(path="", message="it holds binary data; save the text as UTF-8 and create the ConfigMap again")


@dataclass(frozen=True, slots=True, kw_only=True)
class Checked:
    """One text or object of a file, and what is wrong with it."""

    title: str = ""
    """The key of a ConfigMap, or kind and name of an object; empty: the file is one configuration."""
    owner: str = ""
    """Name of the ConfigMap that holds the key."""
    problems: tuple[Problem, ...] = ()
    """Would be refused. Lines are those of the file."""
    warnings: tuple[Problem, ...] = ()
    config: SharingConfig | None = None
    """What the text says, where it can be used."""
    policy: ClusterPolicy | None = None


def check_text(text: str, schema: Mapping[str, Any] | None = None) -> tuple[Checked, ...]:
    """Everything in one file: a configuration, or manifests, several documents or a `List` as kubectl prints it.

    Args:
        text: of the file.
        schema: what the spec of a ClusterPolicy may hold; None: that is not looked at.
    """
    chunks = list(split_documents(text))
    checked = [list(_check_document(chunk, schema or {})) for chunk in chunks]
    if len(chunks) > 1 and all(not item.title for items in checked for item in items):
        # No manifest among them: the whole is one configuration, of which only the first document counts.
        return (_check_sharing(text),)
    return tuple(item for items in checked for item in items)


def check_references(checked: Sequence[Checked]) -> tuple[Checked, ...]:
    """The same, with what a policy names and the ConfigMap given with it does not have."""
    keys: dict[str, list[str]] = {}
    for item in checked:
        if item.owner:
            keys.setdefault(item.owner, []).append(item.title)
    return tuple(_check_default(item, keys) for item in checked)


def check_fit(checked: Checked, inventory: Inventory, ruling: str = "") -> Checked:
    """The same, with what does not fit a node. `ruling`: the policy's MIG strategy; empty: the text decides."""
    if checked.config is None:
        return checked
    built = build_pools(inventory, with_mps_root(checked.config), strategy_of(checked.config, ruling))
    return replace(
        checked,
        problems=(*checked.problems, *built.problems),
        warnings=(*checked.warnings, *built.unserved, *built.warnings),
    )


def strategy_of(config: SharingConfig, ruling: str) -> MigStrategy:
    """The MIG strategy in force: the policy's before the text's, as in NVIDIA's operator."""
    return MigStrategy(ruling) if ruling else config.flags.mig_strategy or MigStrategy.NONE


def check_keys(config_map: ConfigMap) -> Iterator[Checked]:
    """A ConfigMap as an API server has it. Lines are those of each text."""
    for key, text in config_map.data.items():
        checked = Checked(problems=(_EMPTY,)) if _is_empty(text) else _check_sharing(text)
        yield replace(checked, title=key, owner=config_map.name)
    for key in sorted(config_map.binary):
        yield Checked(title=key, owner=config_map.name, problems=(_BINARY,))


def _check_document(text: str, schema: Mapping[str, Any]) -> Iterator[Checked]:
    try:
        document = read_document(text, most=MAX_MANIFEST_BYTES)
    except ConfigurationError as error:
        yield Checked(problems=error.problems)
        return
    data = document.data
    if not isinstance(data, Mapping) or "kind" not in data:
        yield _check_sharing(text)
    elif str(data["kind"]).endswith("List") and isinstance(data.get("items"), list):
        for position, item in enumerate(data["items"]):
            if isinstance(item, Mapping):
                yield from _check_manifest(item, document, ("items", position), schema)
    else:
        yield from _check_manifest(data, document, (), schema)


def _check_sharing(text: str) -> Checked:
    parsed = parse_sharing(text)
    return Checked(problems=parsed.problems, warnings=parsed.warnings, config=parsed.config)


def _check_manifest(
    data: Mapping[str, Any], document: Document, location: tuple[str | int, ...], schema: Mapping[str, Any]
) -> Iterator[Checked]:
    kind, metadata = str(data["kind"]), data.get("metadata")
    name = str(metadata.get("name") or "") if isinstance(metadata, Mapping) else ""
    title = f"{kind} {name}".rstrip()
    if kind == manifests.CONFIG_MAP.kind:
        yield from _check_config_map(data, document, location, name)
    elif kind == manifests.CLUSTER_POLICY.kind:
        unknown = find_unknown(data.get("spec"), schema, "spec")
        checked = _check_policy(data, document, location, title)
        yield replace(checked, warnings=tuple(_located(unknown, document, location)))
    else:
        message = "neither a ConfigMap nor a ClusterPolicy: was not looked at"
        yield Checked(title=title, warnings=(Problem(path="", message=message),))


def _check_config_map(
    data: Mapping[str, Any], document: Document, location: tuple[str | int, ...], name: str
) -> Iterator[Checked]:
    texts = data.get("data") or {}
    binary = data.get("binaryData") or {}
    if not isinstance(texts, Mapping) or not isinstance(binary, Mapping) or not (texts or binary):
        message = "must hold keys, each with a configuration as its text"
        line = document.line_of((*location, "data"))
        yield Checked(title=f"ConfigMap {name}".rstrip(), problems=(Problem(path="data", message=message, line=line),))
        return
    for key, text in texts.items():
        place = (*location, "data", str(key))
        yield replace(_check_key(text, document, place), title=str(key), owner=name)
    for key in binary:
        line = document.line_of((*location, "binaryData", str(key)))
        yield Checked(title=str(key), owner=name, problems=(replace(_BINARY, line=line),))


def _check_key(text: Any, document: Document, place: tuple[str | int, ...]) -> Checked:
    line = document.line_of(place)
    if not isinstance(text, str):
        message = "must be a text; put `|` behind the colon and the configuration below it, indented"
        return Checked(problems=(Problem(path="", message=message, line=line),))
    if _is_empty(text):
        return Checked(problems=(replace(_EMPTY, line=line),))
    checked = _check_sharing(text)
    first = document.line_before_text(place)
    return replace(
        checked,
        problems=tuple(_moved(checked.problems, first, line)),
        warnings=tuple(_moved(checked.warnings, first, line)),
    )


def _is_empty(text: str) -> bool:
    """Refused, as by the controller: an empty key is a slip more often than a wish."""
    return all(not each.strip() or each.lstrip().startswith("#") for each in text.splitlines())


def _moved(problems: Iterable[Problem], first: int | None, line: int | None) -> Iterator[Problem]:
    """From lines of the text to lines of the file; a text that is folded or quoted has no lines of its own there."""
    for problem in problems:
        inner = problem.line
        yield replace(problem, line=line if first is None else first + inner if inner is not None else first)


def _check_policy(data: Mapping[str, Any], document: Document, location: tuple[str | int, ...], title: str) -> Checked:
    parsed = parse_policy(dict(data))
    problems = list(parsed.problems)
    if parsed.policy is not None:
        problems += checking.check(parsed.policy)
        try:
            resolve_image(parsed.policy.device_plugin, "spec.devicePlugin", "of the operator")
        except ConfigurationError as error:
            problems += error.problems
    return Checked(title=title, problems=tuple(_located(problems, document, location)), policy=parsed.policy)


def _located(problems: Iterable[Problem], document: Document, location: tuple[str | int, ...]) -> Iterator[Problem]:
    for each in problems:
        yield replace(each, line=document.line_of((*location, *_parts_of(each.path))))


def _check_default(item: Checked, keys: Mapping[str, Sequence[str]]) -> Checked:
    if item.policy is None:
        return item
    config = item.policy.device_plugin.config
    if config.name not in keys or not config.default or config.default in keys[config.name]:
        return item
    message = (
        f'"{config.default}" is no key of ConfigMap {config.name}, which has {", ".join(sorted(keys[config.name]))}'
    )
    problem = Problem(path=path_of(("spec", "devicePlugin", "config", "default")), message=message)
    return replace(item, problems=(*item.problems, problem))


def _parts_of(path: str) -> list[str | int]:
    parts = re.findall(r"\[(\d+)\]|([^.\[\]]+)", path)
    return [int(number) if number else key for number, key in parts]
