"""Rules of the tree that no tool knows."""

from __future__ import annotations

import re
import subprocess
import sys
import tokenize
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "operator" / "gpushare"
# Texts, not syntax trees: making hundreds of those in a process full of garbage meets a defect of Python 3.11 (gh-106905).
_STRAY = re.compile(r"""[rbfu]*["']nvidia\.com/""", re.IGNORECASE)
_CHARTER = re.compile(r'"""(.{40,}?)"""', re.DOTALL)


def test_operator_is_no_package() -> None:
    """An `__init__.py` there would shadow the standard library's `operator`, and break Python itself."""
    assert not (ROOT / "operator" / "__init__.py").exists()

    code = "import operator, sys; sys.exit(not hasattr(operator, 'itemgetter'))"
    assert subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=False).returncode == 0


@pytest.mark.parametrize(
    "path", [pytest.param(path, id=str(path.relative_to(PACKAGE))) for path in sorted(PACKAGE.rglob("*.py"))]
)
def test_names_are_spelled_once(path: Path) -> None:
    """Label and resource names of NVIDIA's ecosystem are spelled in `names` only."""
    relative = path.relative_to(PACKAGE)
    if relative.as_posix() in {"names.py", "domain/manifests.py"} or relative.parts[:2] == ("sandbox", "tour"):
        return  # names live here; the tour is what a person types
    with path.open("rb") as file:
        strays = [
            f"line {token.start[0]}: {token.string[:60]}"
            for token in tokenize.tokenize(file.readline)
            if token.type == tokenize.STRING and _STRAY.match(token.string)
        ]

    assert strays == []


@pytest.mark.parametrize(
    "path", [pytest.param(path, id=str(path.relative_to(ROOT))) for path in sorted(PACKAGE.rglob("__init__.py"))]
)
def test_packages_have_a_charter(path: Path) -> None:
    """A stranger reads in the first lines what belongs in a folder."""
    charter = _CHARTER.match(path.read_text(encoding="utf-8"))

    assert charter is not None
    assert path.parent == PACKAGE or "Belongs here" in charter[1]
