"""This project's image, as the Dockerfile has it, from this Python: `make image-archive` and the tests on a real node.

The layer below (Python, what the project depends on) is kept in the cache, for the last few sets of dependencies; ours is
built anew each time.
"""

from __future__ import annotations

import compileall
import fcntl
import hashlib
import os
import py_compile
import shutil
import subprocess
import sys
import sysconfig
import tempfile
import tomllib
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from gpushare import __version__, names
from support.images import archives, roots
from support.images.archives import Image

PROJECT: Final = Path(__file__).parents[3]
REFERENCE: Final = f"{names.IMAGE}:{__version__}"
"""What the chart and the operator call the image unless they are told otherwise; runtimes see it below docker.io/library."""
_PREFIX: Final = Path(sys.base_prefix)
_PYTHON: Final = f"python3.{sys.version_info.minor}"
_STANDARD: Final = Path(sysconfig.get_path("stdlib", vars={"installed_base": sys.base_prefix}))
_SITE: Final = "opt/gpushare"
_KEPT: Final = 3
"""Layers of dependencies in the cache."""
_NEEDLESS: Final = {
    "__pycache__",
    "ensurepip",
    "idlelib",
    "lib2to3",
    "site-packages",
    "dist-packages",
    "test",
    "tkinter",
}
_COMMAND: Final = "#!{python}\nfrom gpushare.__main__ import main\n\nmain()\n"
_ENVIRON: Final = (
    "PYTHONUNBUFFERED=1", "NVIDIA_VISIBLE_DEVICES=all", "NVIDIA_DRIVER_CAPABILITIES=compute,utility",
    "NVIDIA_DISABLE_REQUIRE=true", f"PYTHONPATH=/{_SITE}",
)  # fmt: skip
"""As in the Dockerfile, which says why; it has a virtual environment in that place."""


def write_archive(out: Path, *, references: tuple[str, ...] = ()) -> None:
    """The image as an OCI archive, under its own name or under others."""
    with tempfile.TemporaryDirectory() as folder:
        layer = Path(folder, "project.tar")
        _pack_project(Path(folder, "root"), layer)
        image = Image(
            names=references or (f"docker.io/library/{REFERENCE}",), layers=(_dependencies(), layer),
            entrypoint=("gpushare",), environ=_ENVIRON,
        )  # fmt: skip
        # Renamed into place, so that an archive that is there is whole.
        part = out.with_name(f"{out.name}.part")
        archives.write(image, part)
        part.replace(out)


def _pack_project(root: Path, layer: Path) -> None:
    site = root / _SITE
    _install(site, "--no-deps", str(PROJECT))
    command = root / "usr/local/bin/gpushare"
    command.parent.mkdir(parents=True)
    command.write_text(_COMMAND.format(python=_PREFIX / "bin" / _PYTHON))
    command.chmod(0o755)
    archives.pack(root, layer)


def _dependencies() -> Path:
    """The layer below ours, packed once for each Python and each set of dependencies."""
    wanted = "\n".join([(PROJECT / "constraints.txt").read_text(), *_requirements(), sys.version]).encode()
    cache = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache"), "gpu-sharing-operator")
    layer = cache / f"image-{hashlib.sha256(wanted).hexdigest()[:12]}" / "python.tar"
    layer.parent.mkdir(parents=True, exist_ok=True)
    with cache.joinpath("images.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # test runs side by side wait for one layer
        if not layer.exists():
            _pack_dependencies(layer)
        os.utime(layer.parent)
        forget_layers(cache)
    return layer


def _pack_dependencies(layer: Path) -> None:
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder, "root")
        roots.make_root(root)
        _add_python(root)
        _install(root / _SITE, "--constraint", str(PROJECT / "constraints.txt"), *_requirements())
        roots.add_libraries(root, (root / _SITE).rglob("*.so*"))
        archives.pack(root, layer.with_suffix(".part"))
        layer.with_suffix(".part").replace(layer)


def forget_layers(cache: Path) -> None:
    """Removes all layers but those that were used last, since each has some hundred MB."""
    by_use = sorted(cache.glob("image-*"), key=lambda folder: folder.stat().st_mtime)
    for folder in by_use[:-_KEPT]:
        shutil.rmtree(folder)


def _add_python(root: Path) -> None:
    """The interpreter where it is on this machine, since it looks for its libraries there."""
    program = (_PREFIX / "bin" / _PYTHON).resolve()
    roots.add_program(root, program, str(_PREFIX / "bin" / _PYTHON))
    for name in ("python", "python3"):
        (root / "usr/local/bin" / name).symlink_to(_PREFIX / "bin" / _PYTHON)
    library = root / str(_STANDARD).lstrip("/")
    shutil.copytree(_STANDARD, library, symlinks=True, dirs_exist_ok=True, ignore=_ignored)
    roots.add_libraries(root, _STANDARD.glob("lib-dynload/*.so"))
    _compile(library)


def _ignored(_: str, found: list[str]) -> Iterable[str]:
    return [name for name in found if name in _NEEDLESS or name.startswith(("config-", "_test")) or name.endswith(".a")]


def _requirements() -> list[str]:
    """The project's dependencies, without those of its extras."""
    project = tomllib.loads((PROJECT / "pyproject.toml").read_text())["project"]
    return list(project["dependencies"])


def _install(site: Path, *what: str) -> None:
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-compile"]
    done = subprocess.run([*pip, "--target", site, *what], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    _compile(site)


def _compile(folder: Path) -> None:
    # Bytecode that is not held against times, which the files of a layer have not.
    mode = py_compile.PycInvalidationMode.UNCHECKED_HASH
    compileall.compile_dir(folder, quiet=2, workers=os.cpu_count() or 1, invalidation_mode=mode)
