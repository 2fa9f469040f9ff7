"""From the text of a sharing configuration to a value, or to everything that is wrong with it.

Called by the agent before it applies a text, by the controller before it assigns one, and by `gpushare validate`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from gpushare.api.sharing import SharingConfig
from gpushare.errors import ConfigurationError, Problem


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

    from gpushare.api import checking, converting, documents, schema, wording

    try:
        document = documents.read_document(text)
        model = schema.Configuration.model_validate(document.data if document.data is not None else {})
    except ConfigurationError as error:
        return ParsedSharing(config=None, problems=error.problems)
    except ValidationError as error:
        return ParsedSharing(config=None, problems=wording.problems_of(error, document), warnings=document.warnings)
    # Every key by itself is right: NVIDIA's programs see nothing wrong then.
    problems = tuple(replace(each, only_ours=True) for each in checking.contradictions_of(model, document))
    warnings = (*document.warnings, *checking.oddities_of(model, document))
    return ParsedSharing(config=None if problems else converting.config_of(model), problems=problems, warnings=warnings)
