"""Images of what runs beside this project on a real node: the pause container, and the CUDA sample that the examples use."""

from __future__ import annotations

import re
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import Final

from gpushare import data
from support.images import archives, roots
from support.images.archives import Image
from support.nvml_library import compiler

PAUSE: Final = "localhost/pause:1"
_SOURCE: Final = Path(__file__).with_name("idle.c")
_PROGRAMS: Final = ("bash", "cat", "env", "sleep")
"""What the examples' pods run, and what tests run in them."""


def compile_pause(program: Path) -> None:
    """The program of the pause container, for this machine."""
    _compile(program)


def write_pause(out: Path) -> None:
    """The image of the container that keeps a pod's namespaces."""
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder, "root")
        roots.make_root(root)
        _compile(root / "pause")
        _write(out, root, ("/pause",), PAUSE)


def write_samples(out: Path) -> None:
    """An image under each name that pods of the examples have; CUDA is not in it."""
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder, "root")
        roots.make_root(root)
        for name in _PROGRAMS:
            program = shutil.which(name)
            assert program, f"this machine has no {name}"
            roots.add_program(root, Path(program).resolve(), f"/bin/{name}")
        (root / "cuda-samples").mkdir()
        _compile(root / "cuda-samples/vectorAdd")
        _write(out, root, ("/cuda-samples/vectorAdd",), *_names_in_examples())


def write_program(out: Path, program: Path, name: str) -> None:
    """An image of one program of this machine, by the name that pods have for the image."""
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder, "root")
        roots.make_root(root)
        roots.add_program(root, program, f"/usr/local/bin/{program.name}")
        _write(out, root, (program.name,), name)


def _compile(program: Path) -> None:
    subprocess.run([compiler(), "-Os", "-static", "-s", str(_SOURCE), "-o", str(program)], check=True)


def _write(out: Path, root: Path, entrypoint: tuple[str, ...], *names: str) -> None:
    layer = root.with_suffix(".tar")
    archives.pack(root, layer)
    archives.write(Image(names=names, layers=(layer,), entrypoint=entrypoint), out)


def _names_in_examples() -> list[str]:
    texts = [path.read_text() for path in data.path_of("examples").rglob("*.yaml")]
    return sorted({name for text in texts for name in re.findall(r"image: \"?(nvcr\.io/[^\s\"]+)", text)})
