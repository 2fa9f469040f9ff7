"""Rules of the tree that no tool knows."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "operator" / "gpushare"


def _docstrings(tree: ast.AST) -> set[int]:
    """Ids of the nodes that are texts standing alone: docstrings of modules, classes, functions and attributes."""
    return {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}


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
    tree = ast.parse(path.read_text(encoding="utf-8"))
    docstrings = _docstrings(tree)

    strays = [
        f"line {node.lineno}: {node.value[:60]!r}"
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant)
        and isinstance(node.value, str)
        and node.value.startswith("nvidia.com/")
        and id(node) not in docstrings
    ]

    assert strays == []


@pytest.mark.parametrize(
    "path", [pytest.param(path, id=str(path.relative_to(ROOT))) for path in sorted(PACKAGE.rglob("__init__.py"))]
)
def test_packages_have_a_charter(path: Path) -> None:
    """A stranger reads in the first lines what belongs in a folder."""
    text = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or ""

    assert len(text) > 40
    assert path.parent == PACKAGE or "elongs" in text
