"""YAML as Kubernetes reads it, strictly: no duplicate keys, `1:0` stays text, and each path knows its line. Used by `parsing`.

Differs from `yaml.safe_load` where people are bitten: base 60 is not read, dates stay text, `010` is 8 as for kubectl, and
only the first document counts.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

import yaml

from gpushare.api import unreadable
from gpushare.errors import ConfigurationError, Problem

MAX_BYTES: Final = 64 * 1024
"""A configuration of a whole data centre has a few kilobytes; a reader in pure Python needs a second for this much."""
MAX_MANIFEST_BYTES: Final = 4 * 1024 * 1024
"""A file of objects, each of which the API server takes up to 1.5 MB."""
_MAX_MERGED_KEYS: Final = 10_000
_BORDER: Final = re.compile(r"^---(?=\s|$)[^\n]*", re.MULTILINE)
_MAX_DIGITS: Final = 100
_NULL_TAG: Final = "tag:yaml.org,2002:null"
_INT_TAG: Final = "tag:yaml.org,2002:int"
_FLOAT_TAG: Final = "tag:yaml.org,2002:float"
_BOOL_TAG: Final = "tag:yaml.org,2002:bool"
_RESOLVED_HERE: Final = {_INT_TAG, _FLOAT_TAG, _BOOL_TAG, "tag:yaml.org,2002:timestamp"}
_INT: Final = re.compile(r"[-+]?(?:0b[01_]+|0o?[0-7_]+|0x[0-9a-fA-F_]+|[0-9][0-9_]*)$")
_FLOAT: Final = re.compile(
    r"(?:[-+]?(?:[0-9][0-9_]*(?:\.[0-9_]*)?|\.[0-9][0-9_]*)(?:[eE][-+]?[0-9]+)?|[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN))$"
)
_BOOL: Final = re.compile(r"(?:[yYnN]|[yY]es|YES|[nN]o|NO|[tT]rue|TRUE|[fF]alse|FALSE|[oO]n|ON|[oO]ff|OFF)$")
_HALF_CHARACTER: Final = re.compile("[\ud800-\udfff]")
"""Half of a surrogate pair: Python holds it in a string, and nothing that is sent anywhere can."""
_YES: Final = {"y", "yes", "true", "on"}

Location = Sequence[str | int]
"""Keys and positions from the top: `("sharing", "mps", "resources", 0)`."""


def path_of(location: Location) -> str:
    """A location as people write it: `sharing.mps.resources[0]`."""
    text = ""
    for part in location:
        text += f"[{part}]" if isinstance(part, int) else f".{part}" if text else part
    return text


@dataclass(frozen=True, slots=True, kw_only=True)
class Document:
    """The first document of a text."""

    data: Any
    """Plain data; None for an empty document."""
    root: yaml.Node | None
    warnings: tuple[Problem, ...] = ()

    def line_before_text(self, location: Location) -> int | None:
        """Line behind which a text in a block (`|`) begins; None for one that has no lines of its own here."""
        node = self.root
        for part in location:
            found = _child_of(node, part)
            if found is None:
                return None
            node = found[1]
        return node.start_mark.line + 1 if isinstance(node, yaml.ScalarNode) and node.style == "|" else None

    def line_of(self, location: Location) -> int | None:
        """Line of the key or item, counted from 1; of what it would stand in, where it is not there itself."""
        node, line = self.root, None
        if node is not None:
            line = node.start_mark.line + 1
        for part in location:
            found = _child_of(node, part)
            if found is None:
                break
            place, node = found
            line = place.start_mark.line + 1
        return line


def split_documents(text: str) -> Iterator[str]:
    """Each document that is not empty, behind as many empty lines as the file has before it: lines count from its top."""
    start = 0
    for border in [*_BORDER.finditer(text), None]:
        end = border.start() if border is not None else len(text)
        chunk = text[start:end]
        if any(line.strip() and not line.lstrip().startswith("#") for line in chunk.splitlines()) or (
            border is None and start == 0
        ):
            yield "\n" * text.count("\n", 0, start) + chunk
        start = border.end() if border is not None else end


def read_document(text: str, *, most: int = MAX_BYTES) -> Document:
    """Reads the first document, of at most so many bytes.

    Raises:
        ConfigurationError: the text is too long, no YAML, no text, or has a key twice; with every such key.
    """
    if len(text.encode(errors="replace")) > most:
        raise ConfigurationError([Problem(path="", message=f"longer than {most // 1024} KiB; shorten it")])
    loader = None
    try:
        loader = _Loader(text)
        root = loader.get_node() if loader.check_node() else None
        problems = list(_problems_below(root))
        if problems:
            raise ConfigurationError(problems)
        data = loader.construct_document(root) if root is not None else None
        return Document(data=data, root=root, warnings=_warnings_about_rest(loader))
    except RecursionError:
        raise ConfigurationError([Problem(path="", message="nested too deeply to be a configuration")]) from None
    except (yaml.YAMLError, ValueError, OverflowError) as error:
        raise ConfigurationError([unreadable.problem_of(error, text)]) from None
    finally:
        if loader is not None:
            loader.dispose()


def _child_of(node: yaml.Node | None, part: str | int) -> tuple[yaml.Node, yaml.Node] | None:
    """Where a key or item stands, and what it holds."""
    if isinstance(node, yaml.MappingNode):
        return next(((key, value) for key, value in node.value if key.value == str(part)), None)
    if isinstance(node, yaml.SequenceNode) and isinstance(part, int) and part < len(node.value):
        return node.value[part], node.value[part]
    return None


def _problems_below(root: yaml.Node | None) -> Iterator[Problem]:
    # Each node once, however many aliases lead to it: a text of nested aliases has exponentially many paths.
    seen: set[int] = set()
    todo: list[tuple[tuple[str | int, ...], yaml.Node]] = [((), root)] if root is not None else []
    while todo:
        location, node = todo.pop()
        if id(node) in seen:
            continue
        seen.add(id(node))
        if isinstance(node, yaml.MappingNode):
            yield from _double_keys(location, node)
            todo.extend((location, key) for key, _ in node.value)
            todo.extend(((*location, _name_of(key)), value) for key, value in node.value)
        elif isinstance(node, yaml.SequenceNode):
            todo.extend(((*location, position), item) for position, item in enumerate(node.value))
        elif isinstance(node, yaml.ScalarNode) and not node.value.isascii():
            yield from _odd_characters(node)


def _odd_characters(node: yaml.ScalarNode) -> Iterator[Problem]:
    line = node.start_mark.line + 1
    if _HALF_CHARACTER.search(node.value):
        yield Problem(path="", message="holds half a character, such as \\ud800, which is no text", line=line)
    elif node.style is None and unreadable.INVISIBLE.search(node.value):
        yield Problem(path="", message=unreadable.INVISIBLE_MESSAGE, line=line)


def _name_of(key: yaml.Node) -> str:
    """A key for a path; one that is no scalar is refused when it is read."""
    return str(key.value).encode(errors="replace").decode() if isinstance(key, yaml.ScalarNode) else "?"


def _double_keys(location: Location, node: yaml.MappingNode) -> Iterator[Problem]:
    first: dict[str, int] = {}
    for key, _ in node.value:
        if isinstance(key, yaml.ScalarNode) and key.value != "<<":
            name, line = _name_of(key), key.start_mark.line + 1
            if name in first:
                message = f"stands here twice, first in line {first[name]}; keep one of the two"
                yield Problem(path=path_of((*location, name)), message=message, line=line, only_ours=True)
            first.setdefault(name, line)


def _warnings_about_rest(loader: _Loader) -> tuple[Problem, ...]:
    try:
        while loader.check_node():
            node = loader.get_node()
            if node is not None and node.tag != _NULL_TAG:
                message = "only the first YAML document counts; what follows this `---` is ignored"
                return (Problem(path="", message=message, line=node.start_mark.line + 1),)
    except yaml.YAMLError:
        return (Problem(path="", message="only the first YAML document counts; what follows it is ignored"),)
    return ()


class _Loader(yaml.SafeLoader):
    """SafeLoader with the scalars of kubectl's YAML reader."""

    yaml_implicit_resolvers = {  # noqa: RUF012 - the name and shape that PyYAML looks for
        first: [(tag, regexp) for tag, regexp in resolvers if tag not in _RESOLVED_HERE]
        for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
    }

    def flatten_mapping(self, node: yaml.MappingNode) -> None:
        """Resolves `<<`. Bounded, since merges of merges double with each line of the text."""
        super().flatten_mapping(node)
        if len(node.value) > _MAX_MERGED_KEYS:
            raise yaml.constructor.ConstructorError(None, None, "too many merged keys", node.start_mark)

    def read_int(self, node: yaml.ScalarNode) -> int:
        """`8`, `010` and `0o10` (both 8), `0x8`, `0b1000`; `08` is 8."""
        text = self.construct_scalar(node).replace("_", "").lower()
        sign = -1 if text.startswith("-") else 1
        digits = text.lstrip("+-")
        if len(digits) > _MAX_DIGITS:
            raise yaml.constructor.ConstructorError(None, None, "a number of so many digits", node.start_mark)
        if digits.startswith(("0b", "0o", "0x")):
            return sign * int(digits, 0)
        is_octal = digits.startswith("0") and digits.isdecimal() and not set(digits) & {"8", "9"}
        return sign * int(digits, 8 if is_octal else 10)

    def read_float(self, node: yaml.ScalarNode) -> float:
        """`4.0`, `1e1`, `.inf`, `.nan`."""
        return float(self.construct_scalar(node).replace("_", "").lower().replace(".inf", "inf").replace(".nan", "nan"))

    def read_bool(self, node: yaml.ScalarNode) -> bool:
        """`true`, `yes`, `on`, `y` and their opposites."""
        return str(self.construct_scalar(node)).lower() in _YES


_Loader.add_implicit_resolver(_BOOL_TAG, _BOOL, list("yYnNtTfFoO"))
_Loader.add_implicit_resolver(_INT_TAG, _INT, list("-+0123456789"))
_Loader.add_implicit_resolver(_FLOAT_TAG, _FLOAT, list("-+0123456789."))
_Loader.add_constructor(_BOOL_TAG, _Loader.read_bool)
_Loader.add_constructor(_INT_TAG, _Loader.read_int)
_Loader.add_constructor(_FLOAT_TAG, _Loader.read_float)
