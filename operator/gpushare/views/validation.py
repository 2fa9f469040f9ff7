"""What `gpushare validate` found, as lines for people and as data."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from gpushare.errors import Problem
from gpushare.plan.validation import Checked


def build_lines(file: str, checked: Sequence[Checked]) -> Iterator[str]:
    """Each problem as `file: key: path (line N): message`, warnings marked so; one line for a file without any."""
    found = False
    for item in checked:
        title = f"{item.title}: " if item.title else ""
        for problem in item.problems:
            found = True
            yield f"{file}: {title}{problem}"
        for warning in item.warnings:
            found = True
            yield f"{file}: {title}warning: {warning}"
    if not found:
        titles = [item.title for item in checked if item.title]
        yield f"{file}: fine ({', '.join(titles)})" if titles else f"{file}: fine"


def build_document(files: Mapping[str, Sequence[Checked]]) -> Mapping[str, Any]:
    """The same for programs."""
    return {
        "valid": not any(item.problems for checked in files.values() for item in checked),
        "files": [
            {
                "file": file,
                "checked": [
                    {
                        "title": item.title,
                        "problems": list(map(_problem, item.problems)),
                        "warnings": list(map(_problem, item.warnings)),
                    }
                    for item in checked
                ],
            }
            for file, checked in files.items()
        ],
    }


def _problem(problem: Problem) -> dict[str, Any]:
    return {"path": problem.path, "line": problem.line, "message": problem.message}
