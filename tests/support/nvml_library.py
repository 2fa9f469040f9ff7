"""A libnvidia-ml.so.1 of our own, compiled when a test first asks for it, and pynvml with it in the place of a driver.

`nvml_stub/README.md` says what it can do. Compiled into a directory that goes with the test run; nothing is cached longer,
since a build takes half a second.
"""

from __future__ import annotations

import atexit
import contextlib
import ctypes
import functools
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pynvml

from gpushare.nvml import models
from gpushare.nvml.models import Model, Profile

SOURCES = Path(__file__).with_name("nvml_stub")
LIBRARY = "libnvidia-ml.so.1"
_COMPILERS = ("cc", "gcc", "clang")
_FLAGS = ("-std=gnu11", "-O1", "-Wall", "-Wextra", "-fPIC", "-shared", "-fvisibility=hidden", "-pthread")


@functools.cache
def build_library(*, without: tuple[str, ...] = ()) -> Path:
    """Compiles the library; entry points that are named in `without` are missing, as in an old driver."""
    directory = Path(tempfile.mkdtemp(prefix="nvml"))
    atexit.register(shutil.rmtree, directory)
    (directory / "models.inc").write_text(_models(), encoding="utf-8")
    library = directory / LIBRARY
    # A macro takes the name away before the compiler sees it.
    renamed = [f"-D{name}=missing_{name}" for name in without]
    sources = sorted(map(str, SOURCES.glob("*.c")))
    command = [compiler(), *_FLAGS, *renamed, f"-I{directory}", *sources, f"-Wl,-soname,{LIBRARY}", "-o", str(library)]
    built = subprocess.run(command, capture_output=True, text=True, check=False)
    assert built.returncode == 0, f"the stand-in of the NVIDIA driver's library does not compile:\n{built.stderr}"
    return library


def compiler() -> str:
    """A C compiler: what CC names, or the first that is installed.

    Raises:
        AssertionError: there is none. Not a skip: what is proved with it is proved nowhere else.
    """
    found = next(filter(None, map(shutil.which, [os.environ.get("CC", ""), *_COMPILERS])), None)
    assert found, (
        "no C compiler: these tests compile a stand-in of the NVIDIA driver's library (tests/support/nvml_stub). "
        "Install one (apt-get install gcc libc6-dev), or name it with CC=/path/to/cc"
    )
    return found


@dataclass(frozen=True)
class Stub:
    """The driver's side of a test: what the node is, and what happens to it."""

    node: Path
    control: Path

    def describe(self, text: str | bytes) -> None:
        """Another node; seen by whoever connects from now on."""
        self.node.write_bytes(text if isinstance(text, bytes) else text.encode())

    def tell(self, *lines: str) -> None:
        """Lets something happen, before the next call answers."""
        with self.control.open("a", encoding="utf-8") as file:
            file.writelines(f"{line}\n" for line in lines)

    @property
    def environ(self) -> dict[str, str]:
        """What a process needs to find the library and the node."""
        return {
            "LD_LIBRARY_PATH": str(build_library().parent),
            "NVML_STUB_NODE": str(self.node),
            "NVML_STUB_CONTROL": str(self.control),
        }


def write_stub(directory: Path, node: str | bytes) -> Stub:
    """A stub with this node, its two files in the directory."""
    stub = Stub(directory / "node.conf", directory / "control")
    stub.describe(node)
    stub.control.touch()
    return stub


@contextlib.contextmanager
def plugged_in(stub: Stub, *, without: tuple[str, ...] = ()) -> Iterator[Stub]:
    """pynvml of this process with the library in the place of whatever it has loaded, or would find."""
    known = dict(pynvml._nvmlGetFunctionPointer_cache)
    before = pynvml.nvmlLib
    environ = {name: os.environ.get(name) for name in stub.environ}
    pynvml.nvmlLib = ctypes.CDLL(str(build_library(without=without)))
    pynvml._nvmlGetFunctionPointer_cache.clear()
    os.environ |= stub.environ
    try:
        yield stub
    finally:
        pynvml.nvmlLib = before
        pynvml._nvmlGetFunctionPointer_cache.clear()
        pynvml._nvmlGetFunctionPointer_cache.update(known)
        for name, value in environ.items():
            os.environ.pop(name) if value is None else os.environ.update({name: value})


def _models() -> str:
    """The table of models as C."""
    rows: list[str] = []
    text = ""
    for number, model in enumerate(models.MODELS):
        text += _profiles(number, model)
        rows += [
            f'    {{"{key}", "{model.product}", {model.memory_mib}, {model.compute_capability.major}, '
            f"{model.compute_capability.minor}, {f'PROFILES_{number}' if model.profiles else 'NULL'}, {len(model.profiles)}}},"
            for key in sorted({models.plain_name(name) for name in (model.product, *model.aliases)})
        ]
    return text + "\n".join(["static const struct model MODELS[] = {", *rows, "};", ""])


def _profiles(number: int, model: Model) -> str:
    if not model.profiles:
        return ""
    rows = [_profile(name, profile) for name, profile in model.profiles.items()]
    return "\n".join([f"static const struct profile PROFILES_{number}[] = {{", *rows, "};", ""])


def _profile(name: str, profile: Profile) -> str:
    engines = profile.engines
    figures = (
        profile.first_id, profile.gpu_slices, profile.memory_mib, profile.multiprocessors,
        engines.copy, engines.decoder, engines.encoder, engines.jpeg, engines.ofa,
    )  # fmt: skip
    return f'    {{"{name}", {", ".join(map(str, figures))}}},'
